"""Subscribes to the events of a call: a snapshot, then events; a slow reader delays nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import trio

from bargein.routes import Message

from ..events import AgentResponse, AnswerEnded, PermissionRequested, QuestionAsked
from ._snapshot import Snapshot

FEED_LIMIT = 1024
"""How many events may wait for a watcher; a slower one gets a new snapshot in place of the missed
ones, except for ends of answers and questions, which are kept."""

_KEPT = (AnswerEnded, PermissionRequested, QuestionAsked)


class Subscription:
    """A snapshot, and every event after it; iterate it.  Leaving the loop does not end it.

    Text that still waits here when its answer is cut is left out, so you print nothing of an answer
    after its interruption.  ``AnswerEnded`` has all the generated text.

    It yields messages: ``event`` is the event or a snapshot, ``source`` its publisher, and
    ``at_s`` the time in seconds of trio's clock.

    Made by ``handle.subscribe()``; it is closed with its call, or by ``close()``.
    """

    def __init__(self, snapshot: Callable[[], Snapshot], closed: Callable[[Any], None]) -> None:
        self._snapshot = snapshot
        self._on_close = closed
        self._items: deque[Message] = deque([self._snapshot_message()])
        self._more = trio.Event()
        self._over = False

    def add(self, message: Message) -> None:
        """Add an event; never waits."""
        if len(self._items) >= FEED_LIMIT:
            kept = [m for m in self._items if isinstance(m.event, _KEPT)][-FEED_LIMIT // 2 :]
            self._items = deque([*kept, self._snapshot_message()])
        # Only text can become stale; other messages must not keep their runs alive.
        if type(message.event) is not AgentResponse:
            message = Message(message.event, message.source, message.id, message.at_s)
        self._items.append(message)
        self._more.set()

    def _snapshot_message(self) -> Message:
        return Message(self._snapshot(), "call", at_s=trio.current_time())

    def close(self) -> None:
        """Stop watching; waiting events can still be read."""
        if not self._over:
            self._on_close(self)
        self.end()

    def end(self) -> None:
        """Record that no more events will come."""
        self._over = True
        self._more.set()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Message:
        """Return the next event, or a snapshot, in its message.  Cancelling this is safe."""
        await trio.lowlevel.checkpoint()
        while True:
            while self._items:
                message = self._items.popleft()
                if not message.is_stale:
                    return message
            if self._over:
                raise StopAsyncIteration
            self._more = trio.Event()
            await self._more.wait()
