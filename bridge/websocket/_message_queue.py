"""The bounded queue of a WebSocket's messages, one direction of it, and what queues tell of them.

All queues of messages use the same words: ``enqueue()`` never waits, ``next()`` takes the oldest or
``None``, ``close()`` says that nothing more comes, and ``statistics()`` counts.  This one bounds
nothing by itself: whoever fills it awaits ``room()``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, final

import trio

Data = str | bytes
"""One WebSocket message: text or binary."""


class QueueStatistics(NamedTuple):
    """What a queue counts."""

    waiting: int
    """Messages that wait."""
    waiting_bytes: int
    """What they count for: bytes, and characters of text."""
    taken: int
    """Messages that were taken."""
    dropped: int = 0
    """Messages that were queued or offered, and never taken."""


@final
class MessageQueue:
    """Messages in order; one side fills it, the other takes them, and each may wait.

    Attributes:
        is_closed: Whether nothing more comes.
    """

    def __init__(self, max_bytes: float, overhead_bytes: int = 0) -> None:
        """Start empty.

        Args:
            max_bytes: How much may wait before ``room()`` waits.
            overhead_bytes: How much a message counts for besides its own bytes.
        """
        self.is_closed = False
        self._max_bytes = max_bytes
        self._overhead = overhead_bytes
        self._messages: deque[Data] = deque()
        self._bytes = self._count = 0
        self._changed = trio.Event()
        self._on_change: Callable[[], None] = lambda: None

    def notify(self, on_change: Callable[[], None]) -> None:
        """Call ``on_change`` whenever a message is added, or none will be, from now on."""
        self._on_change = on_change

    def enqueue(self, data: Data) -> None:
        """Add a message behind all others."""
        self._messages.append(data)
        self._bytes += len(data) + self._overhead
        self._changed.set()
        self._on_change()

    def next(self) -> Data | None:
        """Take the oldest message; ``None`` if none waits."""
        if not self._messages:
            return None
        data = self._messages.popleft()
        self._bytes -= len(data) + self._overhead
        self._count += 1
        self._changed.set()
        return data

    def close(self) -> None:
        """Say that nothing more comes; those that wait can still be taken."""
        self.is_closed = True
        self._changed.set()
        self._on_change()

    def statistics(self) -> QueueStatistics:
        """Return how much waits, and what was taken so far."""
        return QueueStatistics(len(self._messages), self._bytes, self._count)

    async def more(self) -> None:
        """Wait until a message can be taken or none will come.  Cancelling this is safe."""
        while not self._messages and not self.is_closed:
            await self._change()

    async def room(self) -> None:
        """Wait until no more waits than may, or it is closed.  Cancelling this is safe."""
        while self._bytes > self._max_bytes and not self.is_closed:
            await self._change()

    async def _change(self) -> None:
        if self._changed.is_set():  # a new event would strand those who wait for this one
            self._changed = trio.Event()
        await self._changed.wait()
