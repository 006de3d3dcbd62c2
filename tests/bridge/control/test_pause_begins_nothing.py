"""While a call is paused nothing begins."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from bargein import ChatNode, open_agent
from bargein.events import ToolCall
from bargein.testing import ScriptedModel, calls
from bargein.tools import tool


def pays() -> ScriptedModel:
    """Return a model that calls the tool ``pay``, and then says that it is done."""
    return ScriptedModel([1.0, calls("pay")], then=[1.0, "It is done."])


async def test_a_yes_while_paused_starts_the_tool_when_it_is_resumed(autojump_clock):
    """The answer counts, the tool waits; the pause has settled, as everything is held."""
    begun: list[float] = []

    @tool(permission="ask")
    async def pay() -> str:
        """Pay."""
        begun.append(trio.current_time())
        return "paid"

    async with open_agent(ChatNode(pays(), tools=[pay])) as handle:
        handle.send_input("pay")
        await trio.sleep(2)
        receipt = handle.pause()
        assert handle.snapshot().state == "paused"
        assert handle.respond("call_pay", allow=True)
        await receipt.settled
        assert trio.current_time() == 2
        await trio.sleep(3)
        assert begun == []
        assert handle.snapshot().state == "paused"
        handle.resume()
        await trio.sleep(5)
        assert begun == [5]


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
async def test_a_pause_in_the_instant_of_the_call_holds_the_body(autojump_clock, steps: int):
    """Whether in the step of the ToolCall or some steps later: the body has begun, or it waits."""
    begun: list[float] = []
    paused: list[float] = []
    late: list[float] = []

    @tool
    async def pay() -> str:
        """Pay."""
        begun.append(trio.current_time())
        late.extend(paused)
        return "paid"

    async with open_agent(ChatNode(pays(), tools=[pay])) as handle:

        async def pause() -> None:
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            paused.append(trio.current_time())
            handle.pause()

        def called(_: Any) -> None:
            if steps:
                handle.call.nursery.start_soon(pause)
            else:
                paused.append(trio.current_time())
                handle.pause()

        handle.call.router.observe(ToolCall, called)
        handle.send_input("pay")
        await trio.sleep(4)
        was_begun = list(begun)
        assert not late, "it began while paused"
        assert was_begun in ([], [1])
        assert steps or was_begun == []
        paused.clear()
        handle.resume()
        await trio.sleep(5)
        assert begun == (was_begun or [4])


async def test_a_cancel_while_paused_starts_nothing(autojump_clock):
    """A tool that was allowed while paused never runs if the work is cancelled instead."""
    begun: list[float] = []

    @tool(permission="ask")
    async def pay() -> str:
        """Pay."""
        begun.append(trio.current_time())
        return "paid"

    async with open_agent(ChatNode(pays(), tools=[pay])) as handle:
        handle.send_input("pay")
        await trio.sleep(2)
        handle.pause()
        handle.respond("call_pay", allow=True)
        await trio.sleep(1)
        await handle.cancel().settled
        await trio.sleep(5)
        assert begun == []
        [entry] = [e for e in handle.call.history.entries if e.role == "tool"]
        assert entry.outcome == "not_started"
