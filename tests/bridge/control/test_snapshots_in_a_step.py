"""A snapshot in the step of an event agrees with itself."""

from __future__ import annotations

import trio

from bargein import ChatNode, open_agent
from bargein.events import PermissionAnswered, PermissionRequested, StateChanged
from bargein.testing import ScriptedModel, calls
from bargein.tools import tool


async def test_a_snapshot_in_the_step_of_a_permission(autojump_clock):
    """State, phase and open questions say the same when a question is asked and answered."""
    seen = []

    @tool(permission="ask")
    async def pay() -> str:
        """Pay."""
        await trio.sleep(1)
        return "paid"

    model = ScriptedModel(calls("pay"), then="It is done.")
    async with open_agent(ChatNode(model, tools=[pay])) as handle:

        def look(message):
            now = handle.snapshot()
            asks = bool(now.permissions)
            seen.append((message.event.type, now.state, now.phase, asks))

        for event in (PermissionRequested, PermissionAnswered, StateChanged):
            handle.call.router.observe(event, look)
        handle.send_input("pay")
        await trio.sleep(1)
        assert handle.respond("call_pay", allow=True)
        await trio.sleep(5)
    assert ("agent.permission_requested", "waiting_permission", "permission", True) in seen
    assert ("agent.permission_answered", "tool", "tool", False) in seen
    for _, state, phase, asks in seen:
        assert (state == "waiting_permission") == (phase == "permission") == asks
