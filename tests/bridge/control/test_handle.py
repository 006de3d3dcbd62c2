"""The handle of an agent: verbs, receipts, input, and what a watcher sees."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from bargein import Call, ChatNode, ReasoningNode, open_agent
from bargein.control import VERBS
from bargein.events import (
    AgentResponse,
    AnswerEnded,
    JobFinished,
    LongRunning,
    StateChanged,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.testing import ScriptedModel, calls, open_call
from bargein.tools import ToolContext, tool
from tests.bridge.control.counting import Counter

FEED_LIMIT = 1024


def states(events: list[Any]) -> list[str]:
    return [event.state for event in events if isinstance(event, StateChanged)]


def ends(events: list[Any]) -> list[tuple[int, str]]:
    return [(event.answer, event.outcome) for event in events if isinstance(event, AnswerEnded)]


# --- pause and resume


async def test_a_pause_holds_and_resume_goes_on_with_the_next_word(autojump_clock):
    """Nothing is made while paused, and nothing is made twice after."""
    node = Counter()
    async with open_agent(node) as handle:
        handle.send_input("count")
        await trio.sleep(2.5)
        receipt = handle.pause()
        assert receipt.accepted
        await trio.sleep(60)
        assert (handle.snapshot().state, handle.snapshot().text) == ("paused", "one two three ")
        handle.resume()
        await trio.sleep(0.1)
        assert handle.snapshot().text == "one two three four "
        await trio.sleep(10)
        assert node.begun == 1
        (answer,) = [e for e in handle.call.history.entries if e.role == "agent"]
        assert answer.heard == "one two three four five six "


async def test_a_pause_stops_the_sound_at_the_sample(autojump_clock):
    """Speech is held where it is heard and goes on there: it takes as long as without the pause."""

    async def answer(call: Any) -> None:
        node = Counter()
        route = call.bridge(node).on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
        route.stream(node.generate).broadcast()

    async with open_call(answer, chars_per_s=10) as caller:
        handle = caller.call.handle
        caller.call.say("0123456789 123456789 123456789 ")
        await trio.sleep(1.25)
        heard = caller.heard
        handle.pause()
        await trio.sleep(100)
        assert caller.heard == heard
        began_s = trio.current_time()
        handle.resume()
        await caller.call.answers.silence()
        assert trio.current_time() - began_s == pytest.approx(3.1 - 1.25, abs=0.06)
        assert caller.heard.strip() == "0123456789 123456789 123456789"


async def test_nothing_begins_while_paused(autojump_clock):
    """Input that comes while paused is kept, and answered once the work goes on."""
    node = Counter()
    async with open_agent(node) as handle:
        handle.send_input("count")
        await trio.sleep(1.5)
        handle.pause()
        handle.send_input("and again")
        await trio.sleep(50)
        assert node.begun == 1
        handle.resume()
        await trio.sleep(20)
        assert node.begun == 2
        said = [e.content for e in handle.call.history.entries if e.role == "user"]
        assert said == ["count", "and again"]


async def test_a_caller_who_speaks_cuts_nothing_that_is_paused(autojump_clock):
    """A barge-in is weaker than a pause: what is paused stays as it is."""
    async with open_agent(Counter()) as handle:
        handle.send_input("count")
        await trio.sleep(1.5)
        handle.pause()
        handle.call.publish(UserStartedSpeaking())
        assert handle.barge_in().reason == "superseded_by pause"
        await trio.sleep(1)
        handle.resume("slower")
        await trio.sleep(20)
        entries = handle.call.history.entries
        assert [e.heard for e in entries if e.role == "agent"] == ["one two three four five six "]
        assert any("slower" in e.content for e in entries if e.role == "note")


async def test_time_that_was_paused_is_not_active_time(autojump_clock):
    """The snapshot tells how long an answer was worked on, and how long it has lasted."""
    async with open_agent(Counter()) as handle:
        handle.send_input("count")
        await trio.sleep(2)
        handle.pause()
        await trio.sleep(5)
        assert handle.snapshot().active_s == 2
        handle.resume()
        await trio.sleep(1)
        assert (handle.snapshot().active_s, handle.snapshot().total_s) == (3, 8)


# --- the other verbs


async def test_cancel_stops_and_tells_once(autojump_clock):
    """The work ends in the step of the verb; the answer has one end, with its outcome."""
    async with open_agent(Counter()) as handle:
        messages = handle.subscribe()
        handle.send_input("count")
        await trio.sleep(1.5)
        receipt = handle.cancel()
        assert handle.cancel() is receipt
        assert handle.interrupt() is receipt
        assert handle.call.current_state == "stopping"
        await receipt.settled
        await trio.sleep(5)
        assert handle.snapshot().state == "idle"
        handle.shutdown()
        seen = [message.event async for message in messages]
        assert ends(seen) == [(1, "interrupted")]
        assert states(seen) == ["thinking", "stopping", "idle", "stopping", "closed"]
        (record,) = handle.call.history.interruptions
        assert (record.verb, record.by, record.directive) == ("cancel", "handle", "ask")


async def test_a_watcher_that_is_late_gets_no_text_of_a_cut_answer(autojump_clock):
    """What waits for it is left out from the cut on; facts stay, and so does all other text."""
    async with open_agent(Counter()) as handle:
        messages = handle.subscribe()
        handle.send_input("count")
        await trio.sleep(1.5)
        handle.cancel()
        handle.send_input("count")
        await trio.sleep(1.5)
        seen = []
        with trio.move_on_after(1):
            async for message in messages:
                seen.append(message.event)
        answers = [e for e in seen if isinstance(e, AgentResponse | AnswerEnded)]
        assert [type(event) for event in answers] == [AnswerEnded, *3 * [AgentResponse]]
        assert (answers[0].outcome, answers[0].generated) == ("interrupted", "one two ")
        assert [event.content for event in answers[1:]] == ["one ", "two ", "three "]


async def test_redirect_makes_the_text_the_next_step(autojump_clock):
    """The cut answer ends as redirected, and the next one follows the new instruction."""
    node = Counter()
    async with open_agent(node) as handle:
        messages = handle.subscribe()
        handle.send_input("count")
        await trio.sleep(1.5)
        receipt = handle.redirect("say it in Spanish")
        await receipt.settled
        assert handle.call.current_state == "thinking"
        await trio.sleep(10)
        handle.shutdown()
        seen = [message.event async for message in messages]
        assert ends(seen) == [(1, "redirected"), (2, "completed")]
        assert states(seen)[:2] == ["thinking", "idle"]
        assert node.begun == 2


async def test_background_goes_on_unheard_and_comes_back_once(autojump_clock):
    """The same run goes on; the call is idle meanwhile, and gets the rest as one result."""
    node = Counter()
    async with open_agent(node) as handle:
        messages = handle.subscribe()
        handle.send_input("count")
        await trio.sleep(2.5)
        assert handle.background().accepted
        assert (handle.snapshot().state, handle.snapshot().backgrounded) == ("idle", 1)
        await trio.sleep(20)
        assert handle.snapshot().backgrounded == 0
        assert node.begun == 1
        handle.shutdown()
        seen = [message.event async for message in messages]
        assert ends(seen) == [(1, "backgrounded")]
        assert [e.content for e in seen if isinstance(e, JobFinished)] == ["four five six "]
        assert [e.content for e in seen if isinstance(e, AgentResponse)] == [
            "one ",
            "two ",
            "three ",
        ]


async def test_an_answer_in_the_background_delays_nobody(autojump_clock):
    """The next input is answered at once, while the other answer still works."""
    node = Counter()
    async with open_agent(node) as handle:
        handle.send_input("count")
        await trio.sleep(0.5)
        handle.background()
        handle.send_input("hello")
        await trio.sleep(0.1)
        assert node.begun == 2
        assert handle.snapshot().state == "thinking"


async def test_barge_in_is_silent(autojump_clock):
    """It cuts like a caller who speaks: the record gives the model no directive."""
    async with open_agent(Counter()) as handle:
        handle.send_input("count")
        await trio.sleep(1.5)
        assert handle.barge_in().accepted
        await trio.sleep(1)
        (record,) = handle.call.history.interruptions
        assert (record.verb, record.directive, record.heard) == ("barge_in", "", "one two ")


async def test_emergency_stop_reaches_what_is_in_the_background(autojump_clock):
    """Past every condition: also an answer that was moved away ends."""
    async with open_agent(Counter()) as handle:
        handle.send_input("count")
        await trio.sleep(0.5)
        handle.background()
        handle.send_input("again")
        await trio.sleep(0.5)
        await handle.emergency_stop().settled
        await trio.sleep(1)
        assert (handle.snapshot().state, handle.snapshot().backgrounded) == ("idle", 0)


async def test_emergency_stop_reaches_an_agent_without_the_floor(autojump_clock):
    """What an agent works on unheard ends too, if it is all there is."""
    node = Counter()

    async def answer(call: Call) -> None:
        call.bridge(name="one")
        turns = call.bridge(node, name="two").on(UserStoppedSpeaking)
        turns.interrupt_on(UserStartedSpeaking).stream(node.generate).broadcast()

    async with open_call(answer) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.5)
        assert (node.begun, caller.call.current_state) == (1, "idle")
        receipt = caller.call.handle.emergency_stop()
        assert receipt.accepted
        assert [run.is_cut for route in caller.call.router.routes for run in route.runs] == [True]
        await receipt.settled
        assert caller.call.handle.emergency_stop().reason == "nothing is running"


async def test_shutdown_refuses_input_and_closes(autojump_clock):
    """The answer under way ends as shut down, the call is over, and later verbs are harmless."""
    async with open_agent(Counter()) as handle:
        messages = handle.subscribe()
        handle.send_input("count")
        await trio.sleep(0.5)
        receipt = handle.shutdown(deadline_s=1)
        assert not handle.send_input("more")
        await receipt.settled
        await trio.sleep(0.1)
        assert ends([message.event async for message in messages]) == [(1, "shutdown")]
    others = [verb for verb in VERBS if verb not in ("redirect", "shutdown")]
    receipts = [handle.redirect("more"), *(getattr(handle, verb)() for verb in others)]
    assert {receipt.reason for receipt in receipts} == {"the call is over"}
    assert handle.describe("cancel") == "Cancel: nothing would happen; the call is over."


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ("redirect", "shutdown")])
async def test_an_idle_agent_is_left_alone(autojump_clock, verb):
    """A verb with nothing to act on does nothing, says why, and the next input is answered."""
    node = Counter()
    async with open_agent(node) as handle:
        receipt = getattr(handle, verb)()
        assert not receipt.accepted
        assert receipt.reason.startswith("nothing is")
        assert receipt.settled
        assert f"nothing would happen; {receipt.reason}" in handle.describe(verb)
        handle.send_input("count")
        await trio.sleep(10)
        assert node.begun == 1
        assert not handle.call.history.interruptions


async def test_a_redirect_of_an_idle_agent_is_input(autojump_clock):
    """Its words are not lost: they are answered."""
    node = Counter()
    async with open_agent(node) as handle:
        assert handle.redirect("count").accepted
        await trio.sleep(10)
        assert node.begun == 1
        assert not handle.call.history.interruptions


async def test_an_empty_redirect_is_refused():
    """It says what to use instead."""
    async with open_agent(Counter()) as handle:
        with pytest.raises(ValueError, match="cancel"):
            handle.redirect("  ")
        with pytest.raises(ValueError, match="from 0"):
            handle.shutdown(deadline_s=-1)


# --- who holds it


async def test_handles_work_from_threads():
    """Verbs, input and snapshots work in any thread, and are harmless when stale."""
    async with open_agent(Counter()) as handle:
        assert await trio.to_thread.run_sync(handle.send_input, "count")
        await trio.testing.wait_all_tasks_blocked()
        receipt = await trio.to_thread.run_sync(handle.cancel)
        assert receipt.accepted
        assert (await trio.to_thread.run_sync(handle.snapshot)).answer is None
        assert handle == handle.call.handle
        assert len({handle, handle.call.handle}) == 1


async def test_a_late_watcher_gets_a_snapshot_first(autojump_clock):
    """Whoever comes late sees what has been, then what happens."""
    async with open_agent(Counter()) as handle:
        handle.send_input("count")
        await trio.sleep(1.5)
        first = (await anext(handle.subscribe())).event
        assert (first.state, first.text, first.answer) == ("thinking", "one two ", 1)


async def test_events_come_with_their_time_and_source(autojump_clock):
    """Each is told when it was published and by whom; the snapshot says when it was made."""
    async with open_agent(Counter(), name="counter") as handle:
        await trio.sleep(0.5)
        messages = handle.subscribe()
        first = await anext(messages)
        assert (first.event.state, first.at_s, first.source) == ("idle", 0.5, "call")
        handle.send_input("count")
        await trio.sleep(7)
        handle.shutdown()
        seen = [message async for message in messages]
    words = [(m.event.content, m.at_s, m.source) for m in seen if m.alias == "agent.response"]
    assert words[:2] == [("one ", 0.5, "counter"), ("two ", 1.5, "counter")]
    [said] = [m for m in seen if isinstance(m.event, UserStoppedSpeaking)]
    assert (said.at_s, said.source) == (0.5, "caller")


async def test_a_slow_watcher_delays_nobody(autojump_clock):
    """It gets a snapshot for what it missed, and never misses the end of an answer."""
    from bargein import Snapshot

    class Flood(ReasoningNode):
        async def process_context(self, context: Any) -> AsyncIterator[Any]:
            for _ in range(2 * FEED_LIMIT):
                yield AgentResponse(content="x")

    async with open_agent(Flood()) as handle:
        messages = handle.subscribe()
        handle.send_input("go")
        await trio.sleep(5)
        handle.send_input("go")
        await trio.sleep(5)
        handle.shutdown()
        seen = [message.event async for message in messages]
        assert len(seen) <= FEED_LIMIT + 2
        waiting, _, taken, missed = messages.statistics()
        assert (waiting, taken) == (0, len(seen))
        assert missed > 3 * FEED_LIMIT  # of more than four times as many
        assert ends(seen) == [(1, "completed"), (2, "completed")]
        assert isinstance([e for e in seen if isinstance(e, Snapshot)][-1], Snapshot)


async def test_an_answer_that_takes_long_is_marked_once(autojump_clock):
    """After ten seconds of work, pauses not counted, watchers are told, once an answer."""

    class Slow(ReasoningNode):
        async def process_context(self, context: Any) -> AsyncIterator[Any]:
            for _ in range(30):
                yield AgentResponse(content="x ")
                await trio.sleep(1)

    async with open_agent(Slow()) as handle:
        messages = handle.subscribe()
        handle.send_input("go")
        await trio.sleep(4)
        handle.pause()
        await trio.sleep(100)
        handle.resume()
        await trio.sleep(40)
        handle.send_input("short")
        await trio.sleep(1)
        await handle.cancel().settled
        await trio.sleep(60)
        handle.shutdown()
        marks = [m.event async for m in messages if isinstance(m.event, LongRunning)]
        assert [(m.answer, m.elapsed_s, m.phase) for m in marks] == [(1, 10, "text")]


@pytest.mark.parametrize("asks", ["a question", "a permission"])
async def test_the_time_in_which_people_think_is_no_work(autojump_clock, asks):
    """An answer that waits for the caller has not been at work, and is not marked as long."""

    @tool(permission="ask" if asks == "a permission" else "auto")
    async def book(context: ToolContext) -> str:
        """Book a table."""
        if asks == "a question":
            await context.ask("For how many?")
        await trio.sleep(3)
        return "booked"

    node = ChatNode(ScriptedModel(calls("book"), "Booked."), tools=[book])
    async with open_agent(node) as handle:
        messages = handle.subscribe()
        handle.send_input("a table, please")
        await trio.sleep(20)
        assert handle.snapshot().active_s == pytest.approx(0, abs=0.1)
        seen = handle.snapshot()
        if asks == "a question":
            assert handle.answer(seen.question.id, "for two")
        else:
            assert handle.respond(seen.permissions[0].id, allow=True)
        handle.pause()
        await trio.sleep(60)
        handle.resume()
        await trio.sleep(2)
        assert handle.snapshot().active_s == pytest.approx(2, abs=0.1)
        await trio.sleep(60)
        handle.shutdown()
        assert [m async for m in messages if isinstance(m.event, LongRunning)] == []


async def test_a_pause_just_before_the_mark_costs_no_steps(autojump_clock):
    """An answer that stands still just before it counts as long is not looked at all the time."""

    class Slow(ReasoningNode):
        async def process_context(self, context: Any) -> AsyncIterator[Any]:
            await trio.sleep(10)
            yield AgentResponse(content="x ")

    class Steps(trio.abc.Instrument):
        taken = 0

        def after_task_step(self, task: trio.lowlevel.Task) -> None:
            self.taken += 1

    async with open_agent(Slow()) as handle:
        handle.send_input("go")
        await trio.sleep(9.9999)
        handle.pause()
        steps = Steps()
        trio.lowlevel.add_instrument(steps)
        await trio.sleep(10)
        trio.lowlevel.remove_instrument(steps)
        assert steps.taken < 500, "100 looks, and not 100,000"


async def test_a_receipt_settles_with_its_call(autojump_clock):
    """Whoever waits for a verb is not left waiting when the call is gone."""

    class Stubborn(ReasoningNode):
        async def process_context(self, context: Any) -> AsyncIterator[Any]:
            yield AgentResponse(content="x ")
            with trio.CancelScope(shield=True):
                await trio.sleep(0.9)

    async with open_agent(Stubborn()) as handle:
        handle.send_input("go")
        await trio.sleep(0.1)
        receipt = handle.cancel()
        assert not receipt.settled
        handle.call.end("disconnected")
        await receipt.settled
