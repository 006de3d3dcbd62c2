"""Subscribes to the events of a call: a snapshot, then events; a slow reader delays nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from bargein.routes import Message

from .._message_queue import MessageQueue, QueueStatistics
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
        self._queue: MessageQueue[Message] = MessageQueue(size=lambda message: 0)
        self._queue.enqueue(self._snapshot_message())

    def add(self, message: Message) -> None:
        """Add an event; never waits."""
        if self._queue.waiting >= FEED_LIMIT:
            self._queue.keep(FEED_LIMIT // 2, lambda waiting: isinstance(waiting.event, _KEPT))
            self._queue.enqueue(self._snapshot_message())
        # Only text can become stale; other messages must not keep their runs alive.
        if type(message.event) is not AgentResponse:
            message = Message(message.event, message.source, message.id, message.at_s)
        self._queue.enqueue(message)

    def _snapshot_message(self) -> Message:
        return Message(self._snapshot(), "call", at_s=trio.current_time())

    def close(self) -> None:
        """Stop watching; waiting events can still be read."""
        if not self._queue.is_closed:
            self._on_close(self)
        self.end()

    def end(self) -> None:
        """Record that no more events will come."""
        self._queue.close()

    def statistics(self) -> QueueStatistics:
        """Return how many events wait, were taken, and were missed because they were not taken."""
        return self._queue.statistics()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Message:
        """Return the next event, or a snapshot, in its message.  Cancelling this is safe."""
        await trio.lowlevel.checkpoint()
        while True:
            while (message := self._queue.next()) is not None:
                if not message.is_stale:
                    return message
            if self._queue.is_closed:
                raise StopAsyncIteration
            await self._queue.more()
