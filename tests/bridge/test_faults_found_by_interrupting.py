"""Faults of agents that interrupting a scenario everywhere finds."""

from __future__ import annotations

import math
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
import trio.testing

from bargein import Call, Message
from bargein.events import (
    AgentResponse,
    ToolCall,
    ToolResult,
    UserStoppedSpeaking,
)
from bargein.testing import (
    Caller,
    interrupt_everywhere,
)
from tests.bridge.scenarios import Generate, agent, breaches, broken, one_question, sound

pytestmark = pytest.mark.proof


# --- what it finds ------------------------------------------------------------------------------


def test_an_agent_that_is_stuck_after_an_interrupt_is_found():
    """A flag that only the normal end resets: the agent never answers again."""

    def generator(call: Call) -> Generate:
        busy = []

        async def generate(message: Message) -> AsyncIterator[object]:
            if busy:
                return
            busy.append(1)
            await trio.sleep(0.4)
            yield AgentResponse(content="Done.")
            busy.clear()

        return generate

    report = broken(agent(generator))
    assert {run.point.at_s for run in report.broken} <= {1.0, 1.2, 1.4}
    [breach] = breaches(report)
    assert "probe= raised in bargein/bridge/testing/_interrupt_everywhere.py" in breach


def test_a_task_that_turns_in_circles_is_found():
    """A loop that an interrupt leaves without an end: the clock stands still."""

    def generator(call: Call) -> Generate:
        thinking: list[int] = []

        async def watch() -> None:
            while thinking:
                await trio.lowlevel.checkpoint()

        async def generate(message: Message) -> AsyncIterator[object]:
            thinking.append(1)
            try:
                await trio.lowlevel.checkpoint()
            except trio.Cancelled:
                call.nursery.start_soon(watch)
                raise
            thinking.clear()
            yield AgentResponse(content="Done.")

        return generate

    report = broken(agent(generator))
    assert len(report.broken) == 1
    assert any("it never stops taking steps: " in breach for breach in breaches(report))


def test_a_clean_up_that_takes_an_hour_is_found():
    """The call goes on without it, and it is named when it delays the end of the call."""

    def generator(call: Call) -> Generate:
        async def generate(message: Message) -> AsyncIterator[object]:
            try:
                await trio.sleep(0.4)
            except trio.Cancelled:
                with trio.CancelScope(shield=True):
                    await trio.sleep(3600)
                raise
            yield AgentResponse(content="Done.")

        return generate

    report = broken(agent(generator))
    # Before the first step of the run's task nothing has begun that could clean up.
    assert len(report.broken) == report.cut - 1 > 0
    assert all("s to end; last was 'run of agent: on(User" in breach for breach in breaches(report))


def test_a_descriptor_left_open_is_found(tmp_path):
    """A file that is closed only when all goes well."""
    opened: list[int] = []

    def generator(call: Call) -> Generate:
        async def generate(message: Message) -> AsyncIterator[object]:
            descriptor = os.open(tmp_path, os.O_RDONLY)
            opened.append(descriptor)
            await trio.sleep(0.4)
            os.close(descriptor)
            opened.remove(descriptor)
            yield AgentResponse(content="Done.")

        return generate

    try:
        report = broken(agent(generator))
        assert breaches(report) == {"1 file descriptors are left open"}
        assert all("in generate" in r.point.where or r.answers_cut for r in report.broken)
    finally:
        for descriptor in opened:
            os.close(descriptor)


def test_a_task_left_behind_is_found():
    """A task that does not end with its call is named, with the line where it waits."""

    def generator(call: Call) -> Generate:
        async def generate(message: Message) -> AsyncIterator[object]:
            trio.lowlevel.spawn_system_task(trio.sleep_forever, name="left one")
            yield AgentResponse(content="Done.")

        return generate

    with pytest.raises(AssertionError, match="the task 'left one' is left over, in"):
        interrupt_everywhere(agent(generator), one_question, audio=False)


def test_a_failing_stage_is_found():
    """An error that only an interrupt brings about."""

    def generator(call: Call) -> Generate:
        async def generate(message: Message) -> AsyncIterator[object]:
            try:
                await trio.sleep(0.4)
            finally:
                if trio.current_effective_deadline() == -math.inf:
                    raise ValueError("while cleaning up")
            yield AgentResponse(content="Done.")

        return generate

    report = broken(agent(generator))
    (breach,) = breaches(report)
    assert breach.startswith("an error was logged: stage_failed")
    assert "ValueError" in breach


def test_an_agent_that_fails_anyway_breaks_the_scenario():
    """Without an interrupt every error that is not expected is a breach; others are allowed."""

    def generator(call: Call) -> Generate:
        async def generate(message: Message) -> AsyncIterator[object]:
            yield AgentResponse(content="Done.")
            try:
                await trio.sleep(0.4)
            finally:
                if trio.current_effective_deadline() == -math.inf:
                    raise KeyError("only when it is cut")
            raise ValueError("always")

        return generate

    options: dict[str, Any] = {"audio": False, "limit": 8}
    with pytest.raises(AssertionError, match=r"without an interrupt:\n.*ValueError\('always'\)"):
        interrupt_everywhere(agent(generator), one_question, **options)
    report = broken(agent(generator), expect_errors=ValueError, limit=8)
    assert all("KeyError" in breach for breach in breaches(report))
    allowed = (ValueError, KeyError)
    assert interrupt_everywhere(
        agent(generator), one_question, expect_errors=allowed, **options
    ).cut
    with pytest.raises(TypeError, match="expect_errors= is True"):
        interrupt_everywhere(sound, one_question, expect_errors=3)  # type: ignore[arg-type]


def test_a_tool_without_a_result_is_found():
    """A call that an interrupt leaves without its result."""

    def generator(call: Call) -> Generate:
        async def generate(message: Message) -> AsyncIterator[object]:
            call.router.publish_detached(ToolCall(id="t1", name="look"), "agent")
            await trio.sleep(0.4)
            call.router.publish_detached(ToolResult(id="t1", name="look", content="x"), "agent")
            yield AgentResponse(content="Done.")

        return generate

    async def scenario(caller: Caller) -> None:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()

    report = broken(agent(generator), scenario, probe=None)
    assert "look 't1' has 0 results for 1 calls" in breaches(report)
    assert "the history has no result of look 't1'" in breaches(report)
