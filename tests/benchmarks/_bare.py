"""The baseline: the same work in bare trio, as a good engineer would write it.

A table of handlers by event class, an envelope with slots, one cancel scope per conversation, one
checkpoint per chunk where nothing else waits, one writer task per call.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import trio


class Envelope:
    """An event with its publisher, number and time."""

    __slots__ = ("at_s", "event", "id", "source")

    def __init__(self, event: Any, source: str, id: int, at_s: float) -> None:
        self.event = event
        self.source = source
        self.id = id
        self.at_s = at_s


class Table:
    """Calls the handlers of an event's class."""

    def __init__(self) -> None:
        self._handlers: defaultdict[type, list[Callable[[Envelope], Any]]] = defaultdict(list)
        self._count = 0

    def on(self, cls: type, handler: Callable[[Envelope], Any]) -> None:
        """Add a handler for a class."""
        self._handlers[cls].append(handler)

    def publish(self, event: Any, source: str) -> None:
        """Call the handlers of an event at once."""
        self._count += 1
        message = Envelope(event, source, self._count, trio.current_time())
        for handler in self._handlers.get(type(event), ()):
            handler(message)


class Conversation:
    """Streams an answer when triggered, and cancels it when interrupted."""

    def __init__(
        self,
        nursery: trio.Nursery,
        table: Table,
        start: type,
        interrupt: type,
        generate: Callable[[Envelope], AsyncGenerator[Any, None]],
        *,
        waits: bool,
    ) -> None:
        """Declare a conversation.

        Args:
            nursery: Owns its task.
            table: The source of its events and the target of its chunks.
            start: The event that triggers an answer.
            interrupt: The event that interrupts it.
            generate: Yields an answer.
            waits: Whether `generate` awaits something itself; if not, there is a checkpoint per
                chunk.
        """
        self._nursery = nursery
        self._table = table
        self._generate = generate
        self._waits = waits
        self._scope: trio.CancelScope | None = None
        table.on(start, self._begin)
        table.on(interrupt, self._cut)

    def _begin(self, message: Envelope) -> None:
        self._nursery.start_soon(self._answer, message)

    def _cut(self, _: Envelope) -> None:
        if self._scope is not None:
            self._scope.cancel()

    async def _answer(self, message: Envelope) -> None:
        with trio.CancelScope() as self._scope:
            async with aclosing(self._generate(message)) as chunks:
                async for chunk in chunks:
                    self._table.publish(chunk, "agent")
                    if not self._waits:
                        await trio.lowlevel.checkpoint()


class TaskPerChunkBus:
    """A common way to write a bus: each message gets a task, and a lock keeps the order."""

    def __init__(self, nursery: trio.Nursery, sink: Callable[[Any], Any]) -> None:
        self._nursery = nursery
        self._sink = sink
        self._lock = trio.Lock()

    async def answer(self, chunks: AsyncGenerator[Any, None], scope: trio.CancelScope) -> None:
        """Broadcast what a node yields; cancelling the scope interrupts it."""
        with scope:
            async with aclosing(chunks) as items:
                async for chunk in items:
                    self._nursery.start_soon(self._deliver, chunk)
                    await trio.lowlevel.checkpoint()

    async def _deliver(self, chunk: Any) -> None:
        async with self._lock:
            await self._sink(chunk)
