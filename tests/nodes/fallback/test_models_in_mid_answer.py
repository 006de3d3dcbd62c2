"""A model that fails in the middle of its answer, in a call: what the caller hears, and the record.

The rule: another model is asked if nothing of the answer was heard, or if no tool has run.
"""

from __future__ import annotations

from typing import Any

import pytest
import trio

from bargein import App, ChatNode, tool
from bargein.events import AgentError, AnswerEnded, UserStartedSpeaking
from bargein.fallback import Fallback
from bargein.llm import ChatModelError, TextDelta, ToolCallRequest
from bargein.speech import Fillers, Speech
from bargein.testing import ScriptedModel, calls, open_call
from tests.nodes.speech.failing import Fault, WordEar, WordModel, WordVoice

ANSWER = "Alpha bravo charlie delta echo foxtrot. Golf hotel india juliet kilo lima."
BROKEN = ChatModelError("it broke")


def app_with(*models: Any, tools: Any = (), voice: Any = None, **options: Any) -> App:
    async def answer(call: Any) -> None:
        call.converse(ChatNode(Fallback(*models), tools=tools))

    if voice is None:
        return App(answer)
    return App(answer, speech=Speech(WordEar(), voice, **options))


async def ask(caller: Any) -> None:
    await caller.says("hello", takes_s=1.0)
    await caller.quiet()


def answers(caller: Any) -> list[tuple[str, str]]:
    """Return what was generated and what was heard of each answer, without the notices."""
    entries = [e for e in caller.call.history if e.role == "agent" and not e.is_notice]
    return [(entry.generated.strip(), entry.heard.strip()) for entry in entries]


async def test_an_answer_that_nobody_has_heard_is_given_anew(autojump_clock):
    """What the first model wrote is taken back, and the next one gets the same question."""

    class Late(WordVoice):
        """Takes its time with the first text, so that the model fails before it is heard."""

        def open_context(self, style: object) -> Any:
            self.fault, self.late = Fault("" if self.late else "slow"), True
            return super().open_context(style)

        late = False

    first = ScriptedModel(["Never mind what this says. ", 0.3, "It is ", BROKEN])
    second = ScriptedModel("Quite another answer.")
    app = app_with(first, second, voice=Late(), fillers=None)
    async with open_call(app, own_speech=True) as caller:
        await ask(caller)
        assert caller.heard == "Quite another answer."
        assert answers(caller) == [("Quite another answer.", "Quite another answer.")]
    assert second.requests[0].messages == first.requests[0].messages
    assert [e.outcome for e in caller.events(AnswerEnded)] == ["completed"]


@pytest.mark.parametrize("kind", ["stall", "drop", "garbage"])
@pytest.mark.parametrize("after", [1, 6, 8, 11])
async def test_an_answer_that_has_begun_goes_on_behind_its_last_word(autojump_clock, kind, after):
    """Each word is heard once, and the next model sees the part of the answer that stands."""
    first, second = WordModel(ANSWER), WordModel(ANSWER)
    first.fault = Fault(kind, after)

    first.pace_s = 0.3
    app = app_with(first, second, voice=WordVoice())
    async with open_call(app, own_speech=True) as caller:
        await ask(caller)
        heard = [e for e in caller.call.history if e.role == "agent" and not e.is_notice]
        assert " ".join(entry.heard for entry in heard).split() == ANSWER.split()
    if after == 1:
        return  # nothing was said yet: a word alone is no clause
    stands, note = second.messages[-2:]
    assert (stands["role"], stands["content"].split()) == ("assistant", ANSWER.split()[:after])
    assert (note["role"], "broken off" in note["content"]) == ("user", True)


async def test_a_text_caller_reads_the_answer_to_its_end(autojump_clock):
    """What was sent was read, so it always stands."""
    first, second = WordModel(ANSWER), WordModel(ANSWER)
    first.fault = Fault("drop", 3)
    async with open_call(app_with(first, second), audio=False) as caller:
        await ask(caller)
        assert caller.heard.split() == ANSWER.split()


@pytest.mark.parametrize(
    "again",
    [
        "one two three four five.",
        "Three, four five.",
        "two three four five.",
        " four five.",
        "four five.",
    ],
)
async def test_what_the_next_model_repeats_is_not_said_again(autojump_clock, again):
    """Repeated words are dropped when the next model starts over or repeats the last ones."""
    first = ScriptedModel(["One ", "two ", "three ", BROKEN])
    second = ScriptedModel([word for word in again.replace(" ", " |").split("|") if word])
    async with open_call(app_with(first, second), audio=False) as caller:
        await ask(caller)
        assert caller.heard == "One two three four five."


async def test_half_a_word_is_left_out(autojump_clock):
    """The next model says it whole."""
    first = ScriptedModel(["One two", " thr", BROKEN])
    async with open_call(app_with(first, ScriptedModel("two three.")), audio=False) as caller:
        await ask(caller)
        assert caller.heard == "One two three."


@pytest.mark.parametrize("audio", [True, False])
async def test_the_next_model_may_break_off_as_well(autojump_clock, audio):
    """The third one goes on, and the last one's failure fails the answer."""
    three = [WordModel(ANSWER) for _ in range(3)]
    three[0].fault, three[1].fault = Fault("drop", 7), Fault("drop", 3)
    async with open_call(app_with(*three), audio=audio) as caller:
        await ask(caller)
        assert caller.heard.split() == ANSWER.split()
    three[2].fault = Fault("drop", 1)
    app = app_with(*three)
    async with open_call(app, audio=audio, expect_errors=ChatModelError) as caller:
        await ask(caller)
        assert [e.outcome for e in caller.events(AnswerEnded)] == ["failed"]
        assert "ChatModelError" in caller.events(AgentError)[0].message


class Counter:
    """Counts how often a tool has run."""

    runs = 0


@tool
async def book() -> str:
    """Book a table."""
    Counter.runs += 1
    await trio.lowlevel.checkpoint()
    return "booked"


class CallsThenBreaks:
    """Breaks off after a tool call, which therefore has not run."""

    async def stream(self, messages: Any, *, tools: Any = ()) -> Any:
        await trio.lowlevel.checkpoint()
        yield TextDelta("I book it. ")
        yield ToolCallRequest("c1", "book", {}, "{}")
        raise BROKEN


async def test_a_call_that_was_not_made_is_the_next_models_to_make(autojump_clock):
    """The tool runs once, for the model that asked for it to the end."""
    Counter.runs = 0
    second = ScriptedModel([calls("book")], "Booked.")
    async with open_call(app_with(CallsThenBreaks(), second, tools=[book])) as caller:
        await ask(caller)
    assert Counter.runs == 1
    assert caller.heard.split() == ["I", "book", "it.", "Booked."]


async def test_behind_tools_what_was_heard_fails_the_answer(autojump_clock):
    """A model that goes on there might call the tool once more."""
    Counter.runs = 0
    first = ScriptedModel([calls("book")], ["It is booked for you. ", 1.5, "At ", BROKEN])
    second = WordModel(ANSWER)
    app = app_with(first, second, tools=[book])
    async with open_call(app, expect_errors=ChatModelError) as caller:
        await ask(caller)
        assert [e.outcome for e in caller.events(AnswerEnded)] == ["failed"]
    assert (Counter.runs, second.asked) == (1, 0)


async def test_behind_tools_what_was_not_heard_is_said_anew(autojump_clock):
    """The next model has the results, and no tool runs again; what was said before them stands."""
    Counter.runs = 0
    said = ["I book it. ", calls("book")]
    first = ScriptedModel(said, ["It was ", BROKEN])
    second = ScriptedModel("All done.")
    app = app_with(first, second, tools=[book], voice=WordVoice())
    async with open_call(app, own_speech=True) as caller:
        await ask(caller)
        assert caller.heard.split() == ["I", "book", "it.", "All", "done."]
        assert answers(caller) == [("I book it. All done.", "I book it. All done.")]
    assert Counter.runs == 1
    assert second.requests[0].messages[-1]["content"] == "booked"


@pytest.mark.parametrize("at_s", [0.1, 0.6, 1.2, 2.0, 2.5])
async def test_a_caller_may_interrupt_at_any_moment(autojump_clock, at_s):
    """What they heard is recorded as heard, and nothing of the answer is said any more."""
    first, second = WordModel(ANSWER), WordModel(ANSWER)
    first.fault = Fault("drop", 8)
    second.fault = Fault("slow")
    app = app_with(first, second, voice=WordVoice())
    async with open_call(app, own_speech=True) as caller:
        await caller.says("hello", at_s=0.0, takes_s=1.0)
        await caller.at(1.0 + at_s)
        caller.publish(UserStartedSpeaking())
        heard = caller.heard
        await caller.at(9.0)
        assert ANSWER.startswith(heard.strip())
        assert caller.heard == heard
        assert [e.outcome for e in caller.events(AnswerEnded)] == ["interrupted"]


async def test_one_model_alone_apologises(autojump_clock):
    """No model is left to continue."""
    first = WordModel(ANSWER)
    first.fault = Fault("drop", 8)

    async def answer(call: Any) -> None:
        call.converse(ChatNode(first))

    app = App(answer, speech=Speech(WordEar(), WordVoice()))
    async with app.open(), open_call(app, own_speech=True, expect_errors=True) as caller:
        await ask(caller)
        assert caller.heard.endswith(Fillers().apology)


async def test_who_asks_a_model_without_a_call_may_go_on_too(autojump_clock):
    """What a node outside of any call has yielded stands."""
    first, second = WordModel(ANSWER), WordModel(ANSWER)
    first.fault = Fault("drop", 3)
    node = ChatNode(Fallback(first, second), "Be brief.")
    text = [event.content async for event in node.generate()]
    assert "".join(text).split() == ANSWER.split()
