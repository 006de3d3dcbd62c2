"""The steps of an answer, as they are written down."""

import pytest
import trio

from bargein import Call
from bargein.control import StepList
from bargein.events import AgentResponse, ToolCall, ToolResult, UserTranscriptionReceived
from bargein.testing import open_call


def short(steps, now_s):
    """What a list of steps shows at a moment, in short."""
    views = [step.view(now_s) for step in steps]
    return [(view.tool, view.state, view.elapsed_s) for view in views]


async def test_a_step_lasts_until_the_next_begins(autojump_clock):
    """The model's step ends when it answers, and at the latest when something follows."""
    steps = StepList()
    steps.ask_model()
    await trio.sleep(2)
    steps.call_tool("find", "a")
    await trio.sleep(3)
    steps.ask_model()
    assert short(steps, 5.0) == [("", "done", 2), ("find", "running", 3), ("", "running", 0)]
    steps.model_answered("stopped")
    await trio.sleep(1)
    assert short(steps, 6.0) == [("", "done", 2), ("find", "running", 4), ("", "stopped", 0)]


async def test_a_step_ends_once(autojump_clock):
    """What has ended stays as it ended."""
    step = StepList().call_tool("find", "a")
    await trio.sleep(1)
    step.end("failed")
    await trio.sleep(1)
    step.end("done")
    assert (step.view(9.0).state, step.view(9.0).elapsed_s) == ("failed", 1.0)


@pytest.mark.parametrize(
    ("result", "state"),
    [
        ({"outcome": "completed"}, "done"),
        ({"outcome": "completed", "error": True}, "failed"),
        ({"outcome": "completed_after_interrupt"}, "done"),
        ({"outcome": "not_started"}, "stopped"),
        ({"outcome": "cancelled_before_effect"}, "stopped"),
        ({"outcome": "effect_unknown"}, "stopped"),
        ({"outcome": "withdrawn"}, "stopped"),
        ({"outcome": "timed_out"}, "failed"),
        ({"outcome": "denied"}, "refused"),
        ({"outcome": "backgrounded"}, "background"),
    ],
)
async def test_each_outcome_has_its_word(autojump_clock, result, state):
    """A tool that any node calls is a step, and its result says what became of it."""
    shown = []

    async def answer(call: Call) -> None:
        agent = call.bridge(name="agent")

        async def work(message):
            yield ToolCall(name="find", id="a")
            await trio.sleep(2)
            yield ToolResult(name="find", id="a", **result)
            shown.extend(call.snapshot().step_list)
            yield AgentResponse(content="Done.")

        agent.on(UserTranscriptionReceived).stream(work).broadcast()

    async with open_call(answer) as caller:
        caller.publish(UserTranscriptionReceived(content="find it"))
        await trio.sleep(5)
    [step] = shown
    assert (step.tool, step.id, step.state, step.elapsed_s) == ("find", "a", state, 2.0)


async def test_a_result_of_nobody_is_no_step(autojump_clock):
    """A result without a call, or of another answer, changes nothing."""
    shown = []

    async def answer(call: Call) -> None:
        agent = call.bridge(name="agent")

        async def work(message):
            yield ToolResult(name="find", id="never_called")
            shown.append(call.snapshot().step_list)

        agent.on(UserTranscriptionReceived).stream(work).broadcast()

    async with open_call(answer) as caller:
        caller.publish(UserTranscriptionReceived(content="find it"))
        await trio.sleep(5)
    assert shown == [()]
