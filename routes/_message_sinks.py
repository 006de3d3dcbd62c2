"""Sinks: where messages leave the routes.

A plain function is called at once.  An async one has a bounded queue and its own task: a run whose
messages fill the queue waits, and nothing else does.  Messages that become stale in the queue are
dropped and counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import structlog
import trio

from ._message import Message
from ._repeated_failures import KINDS_KEPT, Failures
from ._run import Run
from ._signatures import is_async_function, name_of
from ._user_errors import as_error

log = structlog.get_logger()

SINK_LIMIT = 64
"""How many messages may wait for an async sink before the runs that send them wait too."""

SINK_OVERFLOW = 4096
"""How many messages may wait in all, with those of publishers that cannot wait; further ones are
dropped."""


class QueuedSink:
    """An async sink with its queue."""

    __slots__ = (
        "_failures",
        "_more",
        "_on_error",
        "_queue",
        "_room",
        "fn",
        "limit",
        "overflowed",
        "stale",
    )

    def __init__(
        self,
        fn: Callable[[Message], Awaitable[Any]],
        limit: int,
        on_error: Callable[[Exception], None],
    ) -> None:
        self.fn = fn
        self._on_error = on_error
        self._failures = Failures(receiver=name_of(fn))
        self.limit = limit
        self.stale = 0
        self.overflowed = 0
        self._queue: deque[tuple[Message, tuple[Run, ...]]] = deque()
        self._more = trio.Event()
        self._room = trio.Event()

    def __call__(self, message: Message) -> None:
        """Queue a message; the run that sent it waits at its next value if the queue is full."""
        queue = self._queue
        if len(queue) >= SINK_OVERFLOW:
            self.overflowed += 1
            if self.overflowed == 1:
                log.warning("sink_overflow", sink=name_of(self.fn), waiting=len(queue))
            return
        kept = tuple(_lineage(message.run))
        for run in kept:  # its output has not arrived: it can be cut even after it has ended
            run.keep()
        queue.append((message, kept))
        if len(queue) == 1:
            self._more.set()
        if len(queue) >= self.limit and message.run is not None:
            message.run.block_on(self.room)

    async def room(self) -> None:
        """Wait until the queue is shorter than its limit.  Cancelling this is safe."""
        while len(self._queue) >= self.limit:
            await self._room.wait()

    async def run(self) -> None:
        """Deliver the queued messages, until cancelled."""
        queue = self._queue
        while True:
            while queue:
                message, kept = queue.popleft()
                if len(queue) == self.limit - 1:
                    self._room.set()
                    self._room = trio.Event()
                is_stale = message.is_stale
                for run in kept:
                    run.release()
                if is_stale:
                    self.stale += 1
                else:
                    await self._hand_on(message)
            self._more = trio.Event()
            await self._more.wait()

    async def _hand_on(self, message: Message) -> None:
        try:
            await self.fn(message)
        except BaseException as caught:  # noqa: ASYNC103 - see as_error()
            error = as_error(caught)
            self._on_error(error)
            sink, alias = name_of(self.fn), message.alias
            if self._failures.is_new("sink_failed", error):
                log.exception("sink_failed", sink=sink, event_alias=alias, exc_info=error)
        else:
            if self._failures.stages:
                self._failures.works("sink_failed")


def _lineage(run: Run | None) -> Iterator[Run]:
    """Yield a run and its ancestors, as far as they can be cut."""
    while run is not None:
        yield run
        run = run.parent


def queued_sink(
    fn: Callable[[Message], Any],
    limit: int,
    on_error: Callable[[Exception], None],
    nursery: trio.Nursery,
) -> QueuedSink | None:
    """Start the queue of an async function and return it; ``None`` for a plain function."""
    if not is_async_function(fn):
        return None
    queued = QueuedSink(fn, limit, on_error)
    nursery.start_soon(queued.run, name=f"sink {name_of(fn)}")
    return queued


class FailingReceivers:
    """The sinks and observers that fail at present; each failure is logged once until it works.

    Attributes:
        known: They, by ``id()``, which stays unique because they are kept here.
    """

    __slots__ = ("_on_error", "known")

    def __init__(self, on_error: Callable[[Exception], None]) -> None:
        self._on_error = on_error
        self.known: dict[int, tuple[Callable[[Message], Any], Failures]] = {}

    def failed(
        self, event: str, receiver: Callable[[Message], Any], message: Message, error: Exception
    ) -> None:
        """Record that one raised, and log it if it is new."""
        self._on_error(error)
        name = name_of(receiver)
        if id(receiver) not in self.known:
            if len(self.known) >= KINDS_KEPT:
                del self.known[next(iter(self.known))]
            self.known[id(receiver)] = receiver, Failures(receiver=name)
        if self.known[id(receiver)][1].is_new(event, error):
            log.error(event, receiver=name, event_alias=message.alias, exc_info=error)

    def call(self, event: str, receiver: Callable[[Message], Any], message: Message) -> None:
        """Call one, and record whether it worked."""
        try:
            receiver(message)
        except BaseException as error:  # noqa: ASYNC103, BLE001 - reported; others get the message
            self.failed(event, receiver, message, as_error(error))
        else:
            self.works(event, receiver)

    def works(self, event: str, receiver: Callable[[Message], Any]) -> None:
        """Record that one worked."""
        failing = self.known.get(id(receiver))
        if failing is not None and failing[1].works(event):
            del self.known[id(receiver)]

    def close(self) -> None:
        """Log how often each failure repeated."""
        for _, failures in self.known.values():
            failures.close()
