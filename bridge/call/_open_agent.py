"""Opens an agent without a caller; you use it through its handle."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from secrets import token_hex

from bargein.routes import Message

from ..agents._default_chain import Generates
from ..events import CallStarted
from ..history._history import History
from ..validation.event_loop import check_trio
from ._call_handle import Handle
from ._open_call import open_bare_call


class _CallerlessTransport:
    """The transport of an agent without a caller: text counts as heard when it is sent."""

    audio = False
    sample_rate_hz = 24_000

    def send(self, message: Message) -> None:
        """Ignore an event."""

    def play(self, utterance: int, pcm: bytes) -> None:
        """Ignore audio; there is none."""

    def clear(self, utterance: int, reason: str) -> None:
        """Drop audio; there is none."""


@asynccontextmanager
async def open_agent(
    node: Generates, *, name: str | None = None, history: History | None = None
) -> AsyncIterator[Handle]:
    """Run an agent without a caller; give it input through its handle.

    It answers one input after the other with ``node.generate``.  Leaving the block ends it and all
    its tasks.

    Args:
        node: Answers; a ``ReasoningNode``, or anything with ``generate(message)``.
        name: The source its events carry; derived from the node's class by default.
        history: What was said earlier in the same conversation; ``None`` for nothing.

    Raises:
        RuntimeError: This does not run on trio.
    """
    check_trio("open_agent()")
    async with open_bare_call(
        _CallerlessTransport(), call_id=token_hex(8), history=history
    ) as call:
        call.converse(node, name=name)
        call.router.publish_detached(CallStarted(call_id=call.call_id), "call")
        yield call.handle
