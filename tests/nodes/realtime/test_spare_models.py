"""A language model, with ears and a voice, that stands in for a speech-to-speech model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from bargein import App, Call, tool
from bargein.events import AgentSpeechCut, AnswerEnded
from bargein.fakes import FakeOpenAIRealtime, Fault, RealtimeCall
from bargein.fallback import Fallback
from bargein.realtime import OpenAIRealtime, RealtimeNode
from bargein.speech import Fillers, Speech, SpeechPiece
from bargein.testing import Caller, ScriptedModel, calls, open_call
from bargein.vendors import SessionLimits

PROMPT = "You sell coffee."
WORD_S = 0.2
APOLOGY = Fillers().apology


class WordVoice:
    """Says each word in 0.2 s."""

    sample_rate_hz = 16_000

    def __init__(self) -> None:
        self.said: list[str] = []

    async def synthesize(self, text: str) -> AsyncIterator[SpeechPiece]:
        self.said.append(text)
        await trio.lowlevel.checkpoint()
        yield SpeechPiece(bytes(2 * round(16_000 * WORD_S * len(text.split()))))


@asynccontextmanager
async def calling(
    vendor: FakeOpenAIRealtime, spare: Any, *, attempts: int = 3, **options: Any
) -> AsyncIterator[Caller]:
    """Open a call whose agent is the vendor's model, with a spare one."""
    made = OpenAIRealtime(
        api_key="k",
        base_url="ws://fake/v1",
        dial=vendor.dial,
        limits=SessionLimits(attempts=attempts),
    )
    model = Fallback(made, spare)
    speech = Speech(voice=WordVoice())

    async def answer(call: Call) -> None:
        call.converse(RealtimeNode(model, PROMPT, hears=False, **options), name="agent")

    app = App(answer, speech=speech)
    async with vendor.open(), open_call(app, own_speech=True, expect_errors=True) as caller:
        await trio.sleep(0.1)
        yield caller


def answers(caller: Caller) -> str:
    """Return what the caller has heard, without fillers."""
    return "\n".join(text for role, text in story(caller) if role == "agent")


def story(caller: Caller) -> list[tuple[str, str]]:
    """Return the conversation as it was heard, without notices."""
    entries = caller.call.history.entries
    return [
        (e.role, (e.heard if e.role == "agent" else e.content).strip())
        for e in entries
        if e.role == "user" or (e.role == "agent" and not e.is_notice)
    ]


HANGS = [
    Fault("stall", "connect"),
    Fault("stall", "first"),
    Fault("refuse", "connect", None, 503),
    Fault("refuse", "connect", None, 401),
    Fault("drop", "first", None),
    Fault("close", "first", None),
    Fault("error", "first", None),
    Fault("garbage", "first", None),
    Fault("empty", times=None),
]


@pytest.mark.parametrize("fault", HANGS, ids=str)
async def test_whatever_fails_before_a_sound_the_spare_answers_the_turn(
    autojump_clock: Any, fault: Fault
) -> None:
    """The turn at which the model hangs or fails is answered, without an apology."""
    vendor = FakeOpenAIRealtime("Never mind.", fault=fault)
    spare = ScriptedModel("One latte, coming up.")
    async with calling(vendor, spare) as caller:
        await caller.says("A latte please.")
        await caller.quiet(within_s=30)
        said = "Never mind." if fault.kind == "garbage" else "One latte, coming up."
        assert story(caller) == [("user", "A latte please."), ("agent", said)]
        assert APOLOGY not in caller.heard
        assert {e.outcome for e in caller.events(AnswerEnded)} == {"completed"}
    if spare.requests:
        asked = [(m["role"], m["content"]) for m in spare.requests[0].messages]
        assert asked == [("system", PROMPT), ("user", "A latte please.")]


@pytest.mark.parametrize(
    "error",
    [
        {"type": "insufficient_quota", "code": "insufficient_quota", "message": "x"},
        {"type": "server_error", "code": "overloaded", "message": "x"},
    ],
)
async def test_an_error_for_lack_of_credit_is_answered_by_the_spare(
    autojump_clock: Any, error: dict[str, Any]
) -> None:
    """A response that fails, whatever its code, costs nothing but the change of the model."""
    vendor = FakeOpenAIRealtime(error)
    async with calling(vendor, ScriptedModel("Sure.")) as caller:
        await caller.says("A latte please.")
        await caller.quiet(within_s=30)
        assert caller.heard == "Sure."


@pytest.mark.parametrize("kind", ["stall", "drop", "error"])
async def test_in_mid_answer_the_caller_hears_an_apology_and_the_spare_goes_on(
    autojump_clock: Any, kind: Any
) -> None:
    """What was heard stands to the word; nobody continues in another voice; the next turn works."""
    vendor = FakeOpenAIRealtime("one two three four five six.", fault=Fault(kind, "middle"))
    spare = ScriptedModel("Here I am.")
    async with calling(vendor, spare) as caller:
        await caller.says("Count.")
        await caller.until(lambda caller: caller.heard, within_s=30)
        vendor.is_refusing = True
        await caller.quiet(within_s=30)
        heard = story(caller)[1][1]
        assert heard
        assert "one two three four five six.".startswith(heard)
        assert caller.heard.endswith(APOLOGY)
        await caller.says("Are you there?")
        await caller.quiet(within_s=30)
        assert caller.heard.endswith("Here I am.")
    asked = [(m["role"], m["content"].strip()) for m in spare.requests[-1].messages]
    expected = [("system", PROMPT), ("user", "Count."), ("assistant", heard)]
    assert asked == [*expected, ("user", "Are you there?")]


async def test_a_barge_in_cuts_the_spare_at_the_heard_word(autojump_clock: Any) -> None:
    """In the voice of the spare, too, the history has what was heard, and the vendor learns it."""
    vendor = FakeOpenAIRealtime("Never.", fault=Fault("stall", "first", None))
    spare = ScriptedModel("one two three four five six seven eight nine ten.", "Yes?")
    async with calling(vendor, spare) as caller:
        await caller.says("Count.")
        await trio.sleep(2.5)
        await caller.until(lambda caller: "three" in caller.heard, within_s=30)
        await caller.says("Stop it please.")
        await caller.quiet(within_s=30)
        (cut,) = caller.events(AgentSpeechCut)
        assert (
            cut.heard.split()
            == ["one", "two", "three", "four", "five", "six"][: len(cut.heard.split())]
        )
        assert story(caller)[1] == ("agent", cut.heard.strip())
    asked = [m["content"].strip() for m in spare.requests[-1].messages if m["role"] == "assistant"]
    assert asked == [cut.heard.strip()]


async def test_the_first_model_returns_and_knows_what_was_said(autojump_clock: Any) -> None:
    """Once a probe has found that it works, it answers again, with the whole conversation."""
    vendor = FakeOpenAIRealtime(
        "Hello there.", {"type": "server_error", "code": "x", "message": "x"}, "OK.", "Back again."
    )
    spare = ScriptedModel("Meanwhile it is me.")
    async with calling(vendor, spare) as caller:
        await caller.says("Hello.")
        await caller.quiet(within_s=30)
        await caller.says("Who are you?")
        await caller.quiet(within_s=30)
        await trio.sleep(5)
        await caller.says("And now?")
        await caller.quiet(within_s=30)
        said = ["Hello there.", "Meanwhile it is me.", "Back again."]
        assert [text for role, text in story(caller) if role == "agent"] == said
    assert len(spare.requests) == 1
    told = vendor.conversations[0].conversation
    assert ("assistant", "Meanwhile it is me.") in [(what, text.strip()) for what, text in told]
    assert [text.strip() for what, text in told if what == "assistant"] == said
    assert vendor.conversations[0].errors == []


async def test_tools_run_once_and_the_spare_gets_their_result(autojump_clock: Any) -> None:
    """A model that fails behind its tools is stood in for with the tools' results."""
    brewed: list[str] = []

    @tool
    async def brew(drink: str) -> str:
        """Brew a drink."""
        brewed.append(drink)
        return "ready"

    failure = {"type": "server_error", "code": "overloaded", "message": "x"}
    vendor = FakeOpenAIRealtime([RealtimeCall("brew", {"drink": "latte"})], failure)
    spare = ScriptedModel("Your latte is ready.")
    async with calling(vendor, spare, tools=[brew]) as caller:
        await caller.says("A latte please.")
        await caller.quiet(within_s=30)
        assert caller.heard == "Your latte is ready."
    assert brewed == ["latte"]
    assert spare.requests[0].messages[-1]["content"] == "ready"


async def test_the_spare_calls_the_tools_of_the_node(autojump_clock: Any) -> None:
    """Tools are those of the node, whichever model calls them, and the first one learns of them."""
    brewed: list[str] = []

    @tool
    async def brew(drink: str) -> str:
        """Brew a drink."""
        brewed.append(drink)
        return "ready"

    failure = {"type": "server_error", "code": "overloaded", "message": "x"}
    vendor = FakeOpenAIRealtime(failure, "OK.", "You are welcome.")
    spare = ScriptedModel(calls("brew", drink="latte"), "It is ready.")
    async with calling(vendor, spare, tools=[brew]) as caller:
        await caller.says("A latte please.")
        await caller.quiet(within_s=30)
        assert caller.heard == "It is ready."
        await trio.sleep(5)
        await caller.says("Thank you.")
        await caller.quiet(within_s=30)
        assert caller.heard.strip().endswith("You are welcome.")
    assert brewed == ["latte"]
    told = vendor.conversations[0].conversation
    assert [what for what, _ in told if what.startswith(("call", "result"))] == [
        "call:brew",
        "result",
    ]


async def test_a_model_known_to_rest_costs_no_wait(autojump_clock: Any) -> None:
    """After one failure the spare answers at once, until the first works again."""
    vendor = FakeOpenAIRealtime("Never.")
    vendor.is_stalled = True
    spare = ScriptedModel("First.", "Second.")
    waits = []
    async with calling(vendor, spare) as caller:
        for sure_s in (2.0, 0.0):
            await caller.says("Hello?")
            over_s, before = trio.current_time(), caller.heard
            await trio.sleep(sure_s)
            await caller.until(lambda caller, b=before: caller.heard != b, within_s=30)
            waits.append(trio.current_time() - over_s)
            await caller.quiet(within_s=30)
    assert waits[0] > 2.0
    assert waits[1] < 1.0


async def test_in_writing_the_spare_answers_too(autojump_clock: Any) -> None:
    """A call without audio needs neither ears nor a voice."""
    vendor = FakeOpenAIRealtime({"type": "server_error", "code": "x", "message": "x"})
    made = OpenAIRealtime(api_key="k", base_url="ws://fake/v1", dial=vendor.dial)
    model = Fallback(made, ScriptedModel("Sure."))

    async def answer(call: Call) -> None:
        call.converse(RealtimeNode(model, PROMPT, hears=False))

    async with vendor.open(), open_call(answer, audio=False) as caller:
        await trio.sleep(0.1)
        await caller.says("Hello?")
        await caller.quiet()
        assert caller.heard == "Sure."


async def test_a_lost_line_of_a_model_that_does_not_hear_deafens_nobody(
    autojump_clock: Any,
) -> None:
    """With ears of its own the call hears on when the model is gone, and apologises for nothing."""
    vendor = FakeOpenAIRealtime("Never.", fault=Fault("refuse", "connect", None, 401))
    async with calling(vendor, ScriptedModel("Sure.")) as caller:
        await trio.sleep(20)
        assert caller.heard == ""
        await caller.says("Hello?")
        await caller.quiet()
        assert caller.heard == "Sure."


def test_a_spare_model_needs_ears() -> None:
    """Mistakes in a chain of models are told where it is made."""
    made, chat = OpenAIRealtime(api_key="k"), ScriptedModel("x")
    with pytest.raises(ValueError, match="hears=False"):
        RealtimeNode(Fallback(made, chat), PROMPT)
    with pytest.raises(TypeError, match="speech-to-speech model comes first"):
        Fallback(chat, made)
    with pytest.raises(TypeError, match="speech-to-speech model comes first"):
        Fallback(made, made)
