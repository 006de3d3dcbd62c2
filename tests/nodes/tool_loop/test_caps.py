"""Caps on steps, time, tool calls, tokens, cost and repeats end an answer."""

from __future__ import annotations

import pytest
import trio

from bargein import Caps, ChatNode
from bargein.events import AnswerEnded, CapWarning, ToolCall, UserStoppedSpeaking
from bargein.llm import ToolCallRequest, Usage
from bargein.testing import open_call
from bargein.tools import shield, tool

from ..answers_by_script import answer_with
from .script import Script, asks, nap, results


def in_circles(count=20):
    return [[f"{n} ", asks("nap", f"n{n}", seconds=1 + n / 100)] for n in range(count)]


@pytest.mark.parametrize(
    ("caps", "which", "models", "tools"),
    [
        (Caps(steps=4), "steps", 2, 2),
        (Caps(steps=5), "steps", 3, 2),
        (Caps(tool_calls=3), "tool_calls", 4, 3),
        (Caps(tokens=3), "tokens", 3, 3),
        (Caps(wall_s=2.5), "wall_s", 3, 3),
    ],
)
async def test_an_answer_ends_exactly_at_its_cap(autojump_clock, caps, which, models, tools):
    """What would pass a cap is not begun; the answer ends as capped, and what it said stands."""
    model = Script(*in_circles())
    node = ChatNode(model, tools=[nap], caps=caps)
    async with open_call(answer_with(node), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        ended = caller.events(AnswerEnded)[0]
        assert (ended.outcome, ended.capped) == ("capped", which)
        assert ended.heard == "".join(f"{n} " for n in range(models))
        assert [warning.which for warning in caller.events(CapWarning)] == [which]
        caller.publish(UserStoppedSpeaking())  # the next answer has caps of its own
        await caller.receives(ToolCall)
    assert len(model.asked) == models + 1
    assert len(caller.events(ToolCall)) == tools + 1


async def test_tools_end_when_the_time_of_an_answer_does(autojump_clock):
    """At the cap on time tools are interrupted by their policies, and the rest goes on no more."""
    tools = [
        tool(name="search", read_only=True)(_sleep_9),
        tool(name="pay", policy=shield(20))(_sleep_9),
    ]
    model = Script([asks("search", "s"), asks("pay", "p")], ["never"])
    node = ChatNode(model, tools=tools, caps=Caps(wall_s=4))
    async with open_call(answer_with(node), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.receives(AnswerEnded)
        assert caller.now_s == pytest.approx(4, abs=0.002)
        assert results(caller)["s"].outcome == "cancelled_before_effect"
        await caller.at(10)
        assert results(caller)["p"].outcome == "completed_after_interrupt"
    assert len(model.asked) == 1


async def _sleep_9() -> str:
    await trio.sleep(9)
    return "slept"


async def test_of_parallel_tools_those_below_the_cap_run(autojump_clock):
    """A step that asks for too many tools gets those that may run, then the answer ends."""
    model = Script([asks("nap", f"n{n}", seconds=n) for n in range(1, 5)])
    node = ChatNode(model, tools=[nap], caps=Caps(tool_calls=2))
    async with open_call(answer_with(node), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert {id: r.outcome for id, r in results(caller).items()} == {
            "n1": "completed", "n2": "completed"
        }  # fmt: skip
        assert caller.events(AnswerEnded)[0].capped == "tool_calls"


async def test_a_model_that_repeats_itself_is_stopped(autojump_clock):
    """The very same call may be made so often, also one that is refused for its arguments."""
    model = Script(*[[ToolCallRequest("x", "nap", None, "{sec")]] * 9)
    node = ChatNode(model, tools=[nap], caps=Caps(repeats=2))
    async with open_call(answer_with(node), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.events(AnswerEnded)[0].capped == "repeats"
    assert len(model.asked) == 4


async def test_what_the_server_tells_counts(autojump_clock):
    """Tokens and cost count as the server and cost_of tell them, in place of the pieces."""
    model = Script(
        ["a ", asks("nap", "1", seconds=0)], ["b ", asks("nap", "2", seconds=1)],
        usage=Usage(input_tokens=100, output_tokens=20),
    )  # fmt: skip
    node = ChatNode(
        model,
        tools=[nap],
        caps=Caps(tokens=1000, cost=0.15),
        cost_of=lambda usage: usage.output_tokens / 200,
    )
    async with open_call(answer_with(node), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        assert caller.call.snapshot().caps == {"tokens": (240, 1000), "cost": (0.2, 0.15)}
        await caller.quiet()
        assert caller.events(AnswerEnded)[0].capped == "cost"
    assert len(model.asked) == 2


async def test_paused_time_is_no_time_at_work(autojump_clock):
    """A cap on time counts no pause."""
    model = Script(["a ", 3, "b"])
    node = ChatNode(model, caps=Caps(wall_s=4))
    async with open_call(answer_with(node), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        caller.call.handle.pause()
        await caller.at(20)
        caller.call.handle.resume()
        await caller.quiet()
        assert caller.heard == "a b"
        assert caller.events(AnswerEnded)[0].outcome == "completed"
