"""What a person at a console does to a call, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import trio

from bargein import App, Call, ChatNode, ReasoningNode, ToolEntry, UserEntry
from bargein.bridge.console._conversation import Conversation
from bargein.bridge.console._lines import Line
from bargein.bridge.console._narrator import Narrator
from bargein.bridge.console._session import Session, earlier_lines
from bargein.bridge.console._status import (
    asked_lines,
    question_lines,
    queued_lines,
    status_line,
    tool_lines,
)
from bargein.events import AgentResponse, UserStartedSpeaking, UserStoppedSpeaking
from bargein.llm import TextDelta, ToolCallRequest, Usage
from bargein.tools import ToolContext, finish, tool


class Shown:
    """A display that keeps what it is given."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.text = ""

    def show(self, line: Line) -> None:
        self.end()
        self.lines.append(line.prefix + line.text)

    def write(self, text: str) -> None:
        self.text += text

    def end(self) -> None:
        if self.text:
            self.lines.append(self.text)
        self.text = ""

    def refresh(self) -> None:
        pass


@tool(policy=finish(5.0))
async def save(name: str) -> str:
    """Save for two seconds."""
    await trio.sleep(2)
    return "saved"


@tool(permission="ask")
async def delete(name: str) -> str:
    """Delete."""
    return "deleted"


@tool
async def seat(name: str, context: ToolContext) -> str:
    """Ask where to sit."""
    answer = await context.ask("Where to sit?", choices=["window", "aisle"])
    return f"{answer.choice or answer.outcome} seat"


class Obedient:
    """A model that calls the tool that is named, and else repeats."""

    async def stream(self, messages, *, tools=()):
        last = messages[-1]
        words = str(last["content"]).split()
        if last["role"] == "user" and words[0] in ("save", "delete", "seat"):
            arguments = {"name": words[-1]}
            yield ToolCallRequest(id="", name=words[0], arguments=arguments, raw="")
        else:
            yield TextDelta(f"so: {words[0]}")
        yield Usage()


async def answer(call: Call) -> None:
    """Answer."""
    node = ChatNode(Obedient(), tools=[save, delete, seat])
    route = call.bridge(node).on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
    route.stream(node.generate).broadcast()


@asynccontextmanager
async def opened(
    app: App | None = None, **options: bool
) -> AsyncIterator[tuple[Call, Conversation, Shown]]:
    """Open a conversation that runs."""
    shown = Shown()
    narrator = Narrator(shown, live=True)
    told: list[Conversation] = []

    def take(message):
        narrator.take(message.event)
        for conversation in told:
            conversation.changed()

    session = Session(app or App(answer), **options)
    async with session.open(take, shown) as (call, conversation), trio.open_nursery() as nursery:
        told.append(conversation)
        nursery.start_soon(conversation.run)
        yield call, conversation, shown
        conversation.leave()


async def test_entries_are_sent_in_turn(autojump_clock):
    """What is entered while the agent works waits, and is then sent in order."""
    async with opened() as (_, conversation, shown):
        conversation.enter("save it")
        await trio.sleep(0.5)
        assert conversation.is_at_work
        conversation.enter("one")
        conversation.enter("two")
        conversation.enter("   ")
        assert list(conversation.queued) == ["one", "two"]
        await trio.sleep(10)
        assert not conversation.is_at_work
    assert [line for line in shown.lines if "save(" not in line] == [
        "> save it", "so: saved", "> one", "so: one", "> two", "so: two",
    ]  # fmt: skip


async def test_an_interrupt_tells_what_goes_on(autojump_clock):
    """The line of an interrupt tells what still runs; a second one while it takes effect none."""
    async with opened() as (_, conversation, shown):
        assert not conversation.interrupt()
        conversation.enter("save it")
        await trio.sleep(0.5)
        assert conversation.interrupt()
        assert conversation.interrupt()
        conversation.enter("and now?")
        await trio.sleep(10)
    assert shown.lines[:3] == [
        "> save it",
        "■ interrupted; still running: save (finish, at most 5.0 s)",
        "> and now?",
    ]
    assert sorted(shown.lines[3:]) == [
        "so: and",
        '✓ save(name="it") · completed after the interrupt · 2.0 s',
    ]


async def test_what_waits_behind_a_cut_answer_is_sent_in_turn(autojump_clock):
    """While what was cut unwinds, one entry is taken; the next waits until that was answered."""

    class Slow(ReasoningNode):
        async def process_context(self, context: Any) -> AsyncIterator[Any]:
            try:
                await trio.sleep(1)
                yield AgentResponse(content=f"so: {context.last_user_text.split()[-1]}")
            finally:
                with trio.move_on_after(0.5, shield=True):
                    await trio.sleep_forever()

    async def slow(call: Call) -> None:
        call.converse(Slow())

    async with opened(App(slow)) as (_, conversation, shown):
        conversation.enter("zero")
        await trio.sleep(0.5)
        conversation.enter("one")
        conversation.enter("two")
        assert conversation.interrupt()
        await trio.sleep(0.2)
        assert list(conversation.queued) == ["two"]
        await trio.sleep(10)
    assert shown.lines == ["> zero", "■ interrupted", "> one", "so: one", "> two", "so: two"]


async def test_a_question_is_answered_by_its_words_alone(autojump_clock):
    """Only the words that answer do; what was queued before the question does not."""
    async with opened() as (call, conversation, shown):
        conversation.enter("save it")
        await trio.sleep(0.5)
        conversation.enter("delete it")
        conversation.enter("yes")
        await trio.sleep(10)
        assert call.state == "waiting_permission"
        assert list(conversation.queued) == ["yes"]
        conversation.enter("perhaps")
        assert call.state == "waiting_permission"
        conversation.enter("Y")
        await trio.sleep(10)
        assert not conversation.queued
    assert "> delete may run" in shown.lines
    assert shown.lines[-4:] == ["> yes", "so: yes", "> perhaps", "so: perhaps"]


async def test_a_tools_question_is_answered_by_the_next_entry(autojump_clock):
    """What was queued before the question waits on; what is entered after it is the answer."""
    async with opened() as (call, conversation, shown):
        conversation.enter("save it")
        await trio.sleep(0.5)
        conversation.enter("seat me")
        conversation.enter("window cleaning")
        await trio.sleep(10)
        assert call.state == "waiting_input"
        assert list(conversation.queued) == ["window cleaning"]
        lines = [line.prefix + line.text for line in asked_lines(conversation.asked)]
        assert lines[:3] == ["? Where to sit?", "  1 window", "  2 aisle"]
        conversation.enter("2")
        await trio.sleep(10)
        assert not conversation.queued
        assert conversation.asked is None
        [saved, seated] = [e.result.content for e in call.history if isinstance(e, ToolEntry)]
        assert (saved, seated) == ("saved", "aisle seat")
    assert [line for line in shown.lines if line.startswith("> ")][-2:] == [
        "> 2",
        "> window cleaning",
    ]


async def test_a_tools_question_is_answered_by_the_pipe(autojump_clock):
    """The next line of a pipe is the answer."""
    async with opened(by_pipe=True) as (call, conversation, shown):
        for line in ("seat me", "the aisle", "hello"):
            conversation.enter(line)
        conversation.no_more()
        await conversation.is_over.wait()
        [seated] = [e.result.content for e in call.history if isinstance(e, ToolEntry)]
        assert seated == "aisle seat"
    assert shown.lines[-1] == "so: hello"


async def test_a_pipe_that_ended_answers_no_question(autojump_clock):
    """Nobody is there to answer: that is told, and the work is cancelled."""
    async with opened(by_pipe=True) as (_, conversation, shown):
        conversation.enter("seat me")
        conversation.no_more()
        await conversation.is_over.wait()
        assert conversation.unanswerable == 1
    assert "! nobody answers: Where to sit?" in shown.lines


async def test_a_refusal(autojump_clock):
    """A no is a no."""
    async with opened() as (_, conversation, shown):
        conversation.enter("delete it")
        await trio.sleep(1)
        conversation.enter("n")
        await trio.sleep(1)
    assert shown.lines[1] == "> delete may not run"
    assert shown.lines[2].startswith('✗ delete(name="it") · denied')


async def test_words_wait_for_an_agent(autojump_clock):
    """What is entered before the agent listens waits for it."""

    async def late(call: Call) -> None:
        await trio.sleep(3)
        await answer(call)

    async with opened(App(late)) as (_, conversation, shown):
        conversation.enter("hello")
        await trio.sleep(2)
        assert shown.lines == []
        await trio.sleep(2)
    assert shown.lines == ["> hello", "so: hello"]


async def test_no_more_waits_for_the_answer(autojump_clock):
    """With no more to come, it is over once everything is answered, also by chains of stages."""

    async def chain(call: Call) -> None:
        bridge = call.bridge(name="chain")

        async def slow(message):
            await trio.sleep(5)
            return AgentResponse(content="at last")

        bridge.on(UserStoppedSpeaking).map(slow).broadcast()

    async with opened(App(chain), by_pipe=True) as (_, conversation, shown):
        conversation.enter("hello")
        conversation.no_more()
        await conversation.is_over.wait()
        assert trio.current_time() == 5.0
    assert shown.lines == ["> hello", "at last"]


async def test_what_is_under_way_is_shown(autojump_clock):
    """The status and the tools at work are told while they last, in rows that are cleaned."""
    async with opened() as (call, conversation, _):
        conversation.enter("delete \x1b[2Jit")
        conversation.enter("next")
        await trio.sleep(1.5)
        now = call.snapshot()
        assert status_line(now) == "waiting permission · step 2 · delete · 1.5 s"
        deaf = replace(now, listening_error="RuntimeError")
        assert status_line(deaf).endswith(" · cannot hear you: RuntimeError")
        assert [line.text for line in tool_lines(now, {})] == ["delete() · asks first"]
        asked, how = question_lines(now.permissions)
        assert asked.text == r'May delete(name="\u001b[2Jit") run?'
        assert how.text == "y, n or always, then Enter; Esc interrupts"
        assert [line.text for line in queued_lines(conversation.queued)] == ["queued: next"]
        assert conversation.interrupt()


def test_many_rows_are_bounded():
    """Of many entries that wait only the first are shown."""
    lines = queued_lines([f"entry {number}" for number in range(9)])
    assert [line.text for line in lines][-2:] == ["queued: entry 2", "and 6 more"]


def test_earlier_entries_are_bounded():
    """Of a long conversation the last entries are shown, and how many came before."""
    entries = tuple(UserEntry(0.0, f"said {number} \x1b[2J") for number in range(30))
    lines = earlier_lines(entries)
    assert lines[0].text == "20 earlier entries"
    assert [line.text for line in lines[1:]] == [f"said {number}" for number in range(20, 30)]


@pytest.mark.parametrize("word", ["/pause", "/resume", "/cancel", "/background", "/stop"])
async def test_a_verb_that_does_nothing_says_why(autojump_clock, word):
    """A verb with nothing to act on says so."""
    async with opened() as (_, conversation, shown):
        conversation.enter(word)
        await trio.sleep(1)
    [line] = shown.lines
    assert "did nothing: nothing is" in line
