"""Opens a call over a transport, and ends it with its block."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from bargein.routes import open_router
from bargein.routes.error_containment import CONTAINED

from .._call_request import CallRequest
from .._transport_protocol import Transport
from ..history._history import History
from ..monitoring._provider_faults import record_faults, stop_recording
from ..monitoring._stage_budgets import Budgets
from ._call import Call


@asynccontextmanager
async def open_bare_call(
    transport: Transport,
    *,
    call_id: str,
    caller: str = "",
    history: History | None = None,
    conversation: str = "",
    request: CallRequest | None = None,
    budgets: Budgets | None = None,
) -> AsyncIterator[Call]:
    """Open a call over a transport; leaving the block ends it and all its tasks.

    Args:
        transport: The caller's side; its method ``attached(call)``, if it has one, is called before
            the first event.
        call_id: The id of the call in logs.
        caller: Who calls.
        history: What was said earlier in the same conversation; ``None`` for nothing.
        conversation: Names the conversation in the conversation store.
        request: How a client of the server requested it.
        budgets: How long each stage of an answer may be silent; ``None`` watches none.
    """
    async with open_router() as router:
        call = Call(router, transport, call_id, caller, history, conversation, request, budgets)
        attached = getattr(transport, "attached", None)
        if callable(attached):
            with CONTAINED:
                attached(call)
        # Neither of the two has a `with` of its own: each would take 0.6 kB of a call.
        outside = structlog.contextvars.bind_contextvars(call_id=call_id)
        add_fault = call.history.add_fault
        record_faults(call_id, add_fault)
        try:
            yield call
        finally:
            try:
                call.end("ended")
            finally:
                stop_recording(call_id, add_fault)
                structlog.contextvars.reset_contextvars(**outside)
