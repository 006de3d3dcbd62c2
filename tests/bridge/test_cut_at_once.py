"""A node that is cut cleans up first, and whoever looks before that finds the cut all the same."""

from __future__ import annotations

import trio
from structlog.testing import capture_logs

from bargein import Call
from bargein.events import (
    AgentResponse,
    AnswerEnded,
    StateChanged,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.testing import open_call


class Talker:
    """Says two words, and takes its time to clean up; tells what it sees and what is logged."""

    def __init__(self, clean_up_s: float = 0.0) -> None:
        self.call: Call | None = None
        self.clean_up_s = clean_up_s
        self.seen: list[object] = []
        self.logs: list[str] = []

    async def answer(self, call: Call) -> None:
        self.call = call
        call.converse(self)

    async def generate(self, message: object):
        try:
            yield AgentResponse(content="One ")
            yield AgentResponse(content="two ")
            await trio.sleep_forever()
        finally:
            self.seen.append(list(self.logs))
            with trio.CancelScope(shield=True):
                await trio.sleep(self.clean_up_s)


async def test_whoever_looks_in_the_same_step_finds_the_cut(autojump_clock):
    """State, history, answer and snapshot are those after the barge-in when publish() returns."""
    async with open_call(Talker().answer, audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.0)
        call = caller.call
        answer = call.answer
        call.publish(UserStartedSpeaking())
        assert answer is not None
        assert "something else" in answer.interrupt().reason
        assert [cut.heard for cut in call.history.interruptions] == ["One two "]
        assert call.history.interruptions[0].phase == "text"
        assert call.current_state == call.snapshot().state == "listening"
        assert call.answer is None
        assert not call.agent_status.is_at_work
        assert call.why_not("barge_in") == "nothing is running"


async def test_state_alone_finds_the_cut(autojump_clock):
    """The state is that after the barge-in, also for who looks at nothing else."""
    async with open_call(Talker().answer, audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.0)
        caller.call.publish(UserStartedSpeaking())
        assert caller.call.current_state == "listening"


async def test_a_route_on_the_same_event_finds_the_cut(autojump_clock):
    """A sync stage that the barge-in triggers sees the record of what it has cut."""
    seen: list[int] = []
    talker = Talker()

    async def answer(call: Call) -> None:
        await talker.answer(call)
        call.bridge(name="watcher", is_agent=False).on(UserStartedSpeaking).map(
            lambda message: seen.append(len(call.history.interruptions))
        )

    async with open_call(answer, audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.0)
        caller.publish(UserStartedSpeaking())
    assert seen == [1]


async def test_no_line_is_written_before_the_node_cleans_up(autojump_clock):
    """The log line of the barge-in comes after the node's clean-up has begun."""
    talker = Talker()
    with capture_logs() as logs:
        async with open_call(talker.answer, audio=False) as caller:
            caller.publish(UserStoppedSpeaking())
            await caller.at(1.0)
            talker.logs = logs  # type: ignore[assignment]
            before = len(logs)
            caller.call.publish(UserStartedSpeaking())
            await caller.at(1.1)
            assert talker.seen == [logs[:before]]
            assert [line["event"] for line in logs[before:]] == ["barge_in"]


async def test_a_barge_in_that_cuts_two_agents_writes_one_line(autojump_clock):
    """The line counts both answers, and is about the older one; it says what of both was heard."""

    async def answer(call: Call) -> None:
        call.converse(Talker(), name="first")
        call.converse(Talker(), name="second")

    with capture_logs() as logs:
        async with open_call(answer, audio=False) as caller:
            caller.publish(UserStoppedSpeaking())
            await caller.at(1.0)
            caller.publish(UserStartedSpeaking())
            await caller.at(2.0)
    lines = [line for line in logs if line["event"] == "barge_in"]
    assert [(line["answer"], line["answers"]) for line in lines] == [(1, 2)]


async def test_a_long_clean_up_delays_neither_line_nor_state(autojump_clock):
    """They come in the same instant, and before the answer is told to be over."""
    with capture_logs() as logs:
        async with open_call(Talker(clean_up_s=0.5).answer, audio=False) as caller:
            caller.publish(UserStoppedSpeaking())
            await caller.at(1.0)
            caller.call.publish(UserStartedSpeaking())
            await caller.at(1.2)
            assert "barge_in" in [line["event"] for line in logs]
            at_s = {type(item.event): item.at_s for item in caller.received}
            assert at_s[StateChanged] == at_s[UserStartedSpeaking] == 1.0
            assert AnswerEnded not in at_s
            await caller.at(2.0)
            kinds = [type(item.event) for item in caller.received]
            assert kinds.index(UserStartedSpeaking) < kinds.index(AnswerEnded)


async def test_a_call_that_ends_at_once_has_all_of_it(autojump_clock):
    """A hang-up in the same step as the barge-in loses neither its record nor its line."""
    with capture_logs() as logs:
        async with open_call(Talker().answer, audio=False) as caller:
            caller.publish(UserStoppedSpeaking())
            await caller.at(1.0)
            caller.call.publish(UserStartedSpeaking())
            caller.call.end("disconnected")
    assert len(caller.call.last_history.interruptions) == 1
    assert [line["event"] for line in logs].count("barge_in") == 1
    assert [event.outcome for event in caller.events(AnswerEnded)] == ["interrupted"]
