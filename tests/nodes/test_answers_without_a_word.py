"""An answer without a word is no success: it is asked for once more, and then it fails."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import structlog
import trio

from bargein import App, Caps, ChatNode, Event, ReasoningNode
from bargein.events import (
    AgentResponse,
    AgentStaysSilent,
    AnswerEnded,
    EndCall,
    JobFinished,
    TurnScored,
    VoiceStarted,
    VoiceStopped,
    VoiceWords,
)
from bargein.fallback import Fallback
from bargein.llm import EmptyAnswerError, TextDelta, ToolCallRequest, Usage
from bargein.speech import Speech, SpeechPiece
from bargein.testing import ScriptedModel, calls, open_call
from bargein.tools import current_tool, tool

APOLOGY = "Sorry, something is not working here. Could you say that again, please?"


class Voice:
    """A voice that says a character in 20 ms."""

    sample_rate_hz = 24_000

    async def synthesize(self, text):
        yield SpeechPiece(b"\x10\x00" * (480 * len(text)))


@tool(read_only=True)
async def look(n: int) -> str:
    """Look it up."""
    return "not found"


async def asked(model, *, audio=True, caps=None, tools=(), turns=("hello",), **options):
    """A caller who has asked a node with this model, and what came of it."""

    async def answer(call) -> None:
        options.setdefault("caps", caps or Caps(steps=100))
        call.converse(ChatNode(model, "p", tools=list(tools), **options))

    speech = Speech(None, Voice()) if audio else None
    app = App(answer, speech=speech)
    expected = {"audio": audio, "expect_errors": True} | ({"own_speech": True} if audio else {})
    async with open_call(app, **expected) as caller:
        for turn in turns:
            await caller.says(turn, takes_s=0.5)
            await trio.sleep(30)
        ends = [e for e in caller.events(AnswerEnded) if e.generated.strip() != APOLOGY]
        return SimpleNamespace(
            caller=caller,
            heard=caller.heard.replace("\n", "").strip(),
            ends=ends,
            outcomes=[e.outcome for e in ends],
            errors=list(caller.errors),
            history=caller.call.history,
        )


EMPTY = {
    "nothing": [],
    "white space": " \n",
    "a mark": "...",
    "no reason": [Usage(finish_reason="")],
    "stop": [Usage(finish_reason="stop")],
    "end_turn": [Usage(finish_reason="end_turn")],
}
FINAL = ["content_filter", "refusal", "SAFETY", "length", "max_tokens", "max_output_tokens"]


@pytest.mark.parametrize("audio", [True, False])
@pytest.mark.parametrize("empty", EMPTY.values(), ids=EMPTY)
async def test_a_second_try_may_have_words(autojump_clock, empty, audio):
    """The model is told that nobody heard anything, and what it then says is the answer."""
    model = ScriptedModel(empty, "Here I am.")
    told = await asked(model, audio=audio)
    assert told.heard.endswith("Here I am.")
    assert told.outcomes == ["completed"]
    assert "had no words" in str(model.requests[1].messages[-1])
    assert told.errors == []


@pytest.mark.parametrize("audio", [True, False])
@pytest.mark.parametrize("empty", EMPTY.values(), ids=EMPTY)
async def test_twice_without_a_word_has_failed(autojump_clock, empty, audio):
    """The caller hears an apology, and the answer names its cause."""
    told = await asked(ScriptedModel(empty, empty), audio=audio)
    assert told.heard.endswith(APOLOGY)
    assert told.outcomes == ["failed"]
    assert told.ends[0].unanswered
    assert isinstance(told.errors[0], EmptyAnswerError)


@pytest.mark.parametrize("audio", [True, False])
@pytest.mark.parametrize("reason", FINAL)
async def test_a_filter_or_a_limit_is_not_asked_again(autojump_clock, reason, audio):
    """Nothing else would come: the answer fails at once, with the provider's word."""
    model = ScriptedModel([Usage(finish_reason=reason)])
    with structlog.testing.capture_logs() as logs:
        told = await asked(model, audio=audio)
    assert len(model.requests) == 1
    assert (told.heard, told.outcomes) == (APOLOGY, ["failed"])
    assert told.ends[0].finish_reason == reason
    [line] = [line for line in logs if line["event"] == "caller_not_answered"]
    assert line["finish_reason"] == reason


async def test_words_before_the_tools_are_no_answer(autojump_clock):
    """The caller waits for what the tool found, whatever was said before it ran."""
    model = ScriptedModel(["Let me look.", calls("look", n=1)], [], "Nothing there.")
    told = await asked(model, tools=[look])
    assert told.heard == "Let me look. Nothing there."
    assert told.outcomes == ["completed"]
    model = ScriptedModel(["Let me look.", calls("look", n=1)], then=[])
    told = await asked(model, tools=[look])
    assert told.heard == f"Let me look.{APOLOGY}"
    assert told.outcomes == ["failed"]


@pytest.mark.parametrize("audio", [True, False])
@pytest.mark.parametrize("which", ["steps", "tool_calls", "repeats"])
async def test_a_cap_without_a_word_apologises(autojump_clock, which, audio):
    """An answer that used up its cap in tools stays capped, and the caller hears why."""
    model = ScriptedModel(then=lambda _: calls("look", n=1))
    told = await asked(model, audio=audio, caps=Caps(**{which: 5}), tools=[look])
    assert (told.outcomes, told.ends[0].capped) == (["capped"], which)
    assert told.heard == APOLOGY


async def test_a_cap_behind_words_apologises_for_nothing(autojump_clock):
    """What was said stands, and is the end of it."""
    told = await asked(ScriptedModel("One two three. " * 20), audio=False, caps=Caps(tokens=1))
    assert told.outcomes == ["completed"] or APOLOGY not in told.heard


async def test_silence_may_be_deliberate(autojump_clock):
    """A node that may be silent, a tool that says so, and one that ends the call fail nothing."""

    @tool
    async def hush() -> str:
        """Say nothing."""
        current_tool().call.publish(AgentStaysSilent(reason="not for us"))
        return "done"

    @tool
    async def speak() -> str:
        """Say it."""
        current_tool().call.say("It is done.")
        return "done"

    @tool
    async def leave() -> str:
        """Hang up."""
        current_tool().call.publish(EndCall())
        return "done"

    for model, tools, heard, options in (
        (ScriptedModel([]), [], "", {"may_be_silent": True}),
        (ScriptedModel(calls("hush"), []), [hush], "", {}),
        (ScriptedModel(calls("speak"), []), [speak], "It is done.", {}),
        (ScriptedModel(calls("leave"), []), [leave], "", {}),
    ):
        told = await asked(model, tools=tools, **options)
        assert (told.heard, told.errors) == (heard, [])
        assert not any(end.unanswered or end.outcome == "failed" for end in told.ends)


class Clock(Event):
    """The time of an app."""


async def test_nobody_waits_for_what_nobody_asked(autojump_clock):
    """An agent that is asked by the app's own clock may have nothing to say."""

    async def answer(call) -> None:
        node = ChatNode(ScriptedModel(then=[]), "p")
        node.context.add("The app asks now and then.")
        call.bridge(node).on(Clock).stream(node.generate).broadcast()

    async with open_call(answer, audio=False) as caller:
        caller.publish(Clock())
        await trio.sleep(10)
        assert [e.outcome for e in caller.events(AnswerEnded)] == ["completed"]
        assert caller.heard == ""


class Silent(ReasoningNode):
    """A node of one's own."""

    def __init__(self, *pieces) -> None:
        super().__init__()
        self.pieces = pieces

    async def process_context(self, context):
        for piece in self.pieces:
            yield piece


@pytest.mark.parametrize(
    ("pieces", "outcome"),
    [
        ((), "failed"),
        ((AgentResponse(content=" "),), "failed"),
        ((AgentResponse(content="Yes."),), "completed"),
        ((AgentStaysSilent(),), "completed"),
        ((Clock(),), "completed"),
    ],
)
async def test_a_node_of_ones_own_answers(autojump_clock, pieces, outcome):
    """It says or publishes something, or its answer fails with an apology."""

    async def answer(call) -> None:
        call.converse(Silent(*pieces))

    async with open_call(answer, audio=False, expect_errors=True) as caller:
        await caller.says("hello", takes_s=0.5)
        await trio.sleep(10)
        assert caller.events(AnswerEnded)[0].outcome == outcome
        assert (APOLOGY in caller.heard) is (outcome == "failed")


class Own:
    """A model of one's own, which yields these pieces."""

    def __init__(self, *pieces) -> None:
        self.pieces = pieces
        self.asked = 0

    async def stream(self, messages, *, tools=()):
        self.asked += "Say OK." not in str(messages)  # a probe of a provider that failed
        for piece in self.pieces:
            yield piece


async def test_a_model_of_ones_own_answers(autojump_clock):
    """It is asked twice, whether it yields its usage or nothing at all."""
    for pieces in ((), (Usage(),), (TextDelta(" "), Usage(finish_reason="stop"))):
        model = Own(*pieces)
        told = await asked(model)
        assert (model.asked, told.outcomes, told.heard.strip()) == (2, ["failed"], APOLOGY)


async def test_a_fallback_takes_white_space_for_nothing(autojump_clock):
    """The next model answers; when all are silent, the answer fails with the last one's cause."""
    told = await asked(Fallback(Own(TextDelta(" \n"), Usage()), ScriptedModel("Here.")))
    assert (told.heard, told.outcomes) == ("Here.", ["completed"])
    one, other = Own(Usage(finish_reason="stop")), Own(Usage(finish_reason="content_filter"))
    told = await asked(Fallback(one, other))
    assert (one.asked, other.asked) == (1, 1)
    assert (told.heard, told.outcomes) == (APOLOGY, ["failed"])
    assert told.ends[0].finish_reason == "content_filter"


async def test_a_result_that_was_promised_is_told(autojump_clock):
    """When a background job is done, and the model has no words for it, the caller hears of it."""

    @tool(policy="detach")
    async def search() -> str:
        """Search."""
        await trio.sleep(20)
        return "found"

    model = ScriptedModel(calls("search"), "By the way.", then=[])

    async def answer(call) -> None:
        call.converse(ChatNode(model, "p", tools=[search]))

    async with open_call(answer, audio=False, expect_errors=True) as caller:
        await caller.says("search", takes_s=0.5)
        await trio.sleep(3)
        await caller.says("and then", takes_s=0.5)
        await caller.receives(JobFinished, within_s=60)
        await trio.sleep(10)
        assert caller.events(AnswerEnded)[-2].outcome == "failed"
        assert caller.heard.endswith(APOLOGY)


# --- cut off -------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["length", "max_tokens"])
@pytest.mark.parametrize(
    "rest",
    [
        "ueberry muffin. And much more.",
        "blueberry muffin. And much more.",
        "I can offer you the blueberry muffin. And more.",
        ["bl", "ueberry", " muffin", ".", " And", " more"],
        ["blue", "berry muffin."],
    ],
)
async def test_a_sentence_that_was_cut_off_is_finished(autojump_clock, reason, rest):
    """The model is asked for its end, which is joined within the word, and for nothing more."""
    pieces = [rest] if isinstance(rest, str) else rest
    cut = ["I can offer you the bl", Usage(finish_reason=reason)]
    model = ScriptedModel(cut, pieces, "And a tea.")
    told = await asked(model, turns=("what is there", "what else"))
    assert told.heard == "I can offer you the blueberry muffin.And a tea."
    assert told.outcomes == ["completed", "completed"]
    assert told.ends[0].finish_reason == reason
    assert "broken off" in str(model.requests[1].messages[-1])
    assert "reached the limit" in str(model.requests[2].messages)


async def test_a_word_that_was_whole_keeps_its_space(autojump_clock):
    """The rest of a sentence begins with the space in front of its word."""
    cut = ["I can offer you the blue", Usage(finish_reason="length")]
    told = await asked(ScriptedModel(cut, " muffin."))
    assert told.heard == "I can offer you the blue muffin."


async def test_whole_sentences_are_not_gone_on_with(autojump_clock):
    """A limit that comes behind a sentence ends the answer."""
    model = ScriptedModel(["That is all.", Usage(finish_reason="length")])
    told = await asked(model)
    assert (told.heard, told.outcomes, len(model.requests)) == ("That is all.", ["completed"], 1)
    assert told.ends[0].finish_reason == "length"


async def test_a_sentence_without_end_is_asked_for_once(autojump_clock):
    """If its rest is cut off too, what was said stands."""
    cut = [" and on and on", Usage(finish_reason="length")]
    model = ScriptedModel(["It goes", Usage(finish_reason="length")], cut)
    told = await asked(model)
    assert (told.heard, told.outcomes) == ("It goes and on and on", ["completed"])
    model = ScriptedModel(["It goes", Usage(finish_reason="length")], " on" * 1000)
    assert len((await asked(model)).heard) < 320


async def test_a_filter_in_mid_sentence_is_told(autojump_clock):
    """The event, the log and the model's next request name it."""
    model = ScriptedModel(["It is the", Usage(finish_reason="content_filter")], "Yes.")
    with structlog.testing.capture_logs() as logs:
        told = await asked(model, turns=("one", "two"))
    assert told.ends[0].finish_reason == "content_filter"
    assert any(line["event"] == "answer_withheld" for line in logs)
    assert "content filter" in str(model.requests[1].messages)


async def test_a_sub_agent_without_words_fails_its_tool(autojump_clock):
    """Whoever asked it gets an error instead of an empty result."""
    inner = ChatNode(ScriptedModel(then=[]), "p")
    inner.context.add("Say what you know.")

    @tool
    async def ask_expert() -> str:
        """Ask."""
        return "".join([e.content async for e in inner.process_context(inner.context)])

    model = ScriptedModel(calls("ask_expert"), "The expert does not know.")
    told = await asked(model, tools=[ask_expert])
    assert told.heard == "The expert does not know."
    assert "EmptyAnswerError" in str(model.requests[1].messages[-1])


def test_a_request_without_own_fields_has_none():
    """The fields of a provider are empty by default."""
    assert ToolCallRequest("x", "f", {}, "{}").extra == {}


SLOW_AND_SILENT = {
    "completed": {"may_be_silent": True},
    "asked twice": {},
}


@pytest.mark.parametrize("options", SLOW_AND_SILENT.values(), ids=SLOW_AND_SILENT)
async def test_who_was_asked_to_wait_is_told_how_it_ended(autojump_clock, options):
    """After a filler even a silence that may be deliberate ends in an apology, and in one."""
    done = await asked(ScriptedModel([6.0], []), **options)
    assert done.heard.startswith("One moment.I am still working on it.")
    assert done.heard.endswith(APOLOGY)
    assert done.heard.count(APOLOGY) == 1


async def test_nobody_is_apologised_to_without_a_filler(autojump_clock):
    """A silence that may be deliberate and comes soon stays silent."""
    assert (await asked(ScriptedModel([1.0]), may_be_silent=True)).heard == ""


async def test_a_slow_node_that_stays_silent_is_apologised_for(autojump_clock):
    """Also one that says so itself: the caller has been told that something comes."""

    class Late(ReasoningNode):
        async def process_context(self, context):
            await trio.sleep(6)
            yield AgentStaysSilent()

    async def answer(call) -> None:
        call.converse(Late())

    app = App(answer, speech=Speech(None, Voice()))
    async with open_call(app, own_speech=True) as caller:
        await caller.says("hello", takes_s=0.5)
        await trio.sleep(30)
        assert caller.heard.endswith(APOLOGY)


@pytest.mark.parametrize("after_s", [2.5, 4.2])
async def test_a_slow_ear_that_finds_no_words_is_apologised_for(autojump_clock, after_s):
    """The caller was asked to wait within their turn, and then the turn had no words."""

    async def answer(call) -> None:
        call.converse(ChatNode(ScriptedModel("Hello.")))

    app = App(answer, speech=Speech(None, Voice()))
    async with open_call(app, own_speech=True) as caller:
        caller.publish(VoiceStarted())
        await trio.sleep(0.8)
        caller.publish(VoiceStopped())
        await trio.sleep(after_s)
        assert "One moment." in caller.heard
        caller.publish(VoiceWords(content=""))
        caller.publish(TurnScored(complete=1.0, over=True))
        await trio.sleep(30)
        assert caller.heard.replace("\n", "").removeprefix("One moment.")  # not left in silence
        assert caller.heard.count(APOLOGY) + caller.heard.count("did not catch") == 1


async def test_who_was_asked_to_wait_and_cancels_hears_no_apology(autojump_clock):
    """Who has ended the work waits for nothing."""

    async def answer(call) -> None:
        call.converse(ChatNode(ScriptedModel([20.0, "Late."])))

    app = App(answer, speech=Speech(None, Voice()))
    async with open_call(app, own_speech=True) as caller:
        await caller.says("hello", takes_s=0.5)
        await trio.sleep(4)
        caller.call.handle.cancel()
        await trio.sleep(20)
        assert caller.heard.replace("\n", "") == "One moment."
