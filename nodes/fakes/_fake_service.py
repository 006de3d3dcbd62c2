"""Connects clients to a fake of a vendor's service, and checks that they disconnect."""

from __future__ import annotations

import math
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, ClassVar, Self

import trio

from bargein.routes.service_nursery import open_service_nursery

from ._fault import Fault, FaultKind
from ._memory_stream import memory_stream_pair

SLOW_S = 1.0
"""How late a slow message is, in seconds."""

FLOOD_BYTES = 48 << 20
"""How many bytes a flood sends, unless the client closes the connection first."""

LEAVE_S = 5.0
"""How long connections may take to end after their last use, in seconds."""


class FaultCountdown:
    """The fault of a fake, and how often it will still strike."""

    def __init__(self, fault: Fault | None) -> None:
        self._fault = fault
        self._left = math.inf if fault is None or fault.times is None else fault.times

    @property
    def fault(self) -> Fault | None:
        """The fault; ``None`` if there is none, or it has struck often enough."""
        return self._fault if self._left > 0 else None

    def count(self) -> None:
        self._left -= 1


class FakeService:
    """The base of fakes: accepts connections in memory by `dial`, or over real sockets by `serve`.

    Attributes:
        faults: The faults that it can play.
    """

    faults: ClassVar[frozenset[FaultKind]] = frozenset()

    key: ClassVar[str] = ""
    """A pattern of the line of a request that brings a key: its path, or a header; case does not
    count, and an empty pattern asks for none."""

    no_key: ClassVar[Any] = {}
    """What a request without a key is answered, with status 401."""

    def __init__(self, fault: Fault | None = None) -> None:
        """Make a fake without connections.

        Args:
            fault: The fault to play; ``None`` for none.

        Raises:
            ValueError: This fake cannot play that fault.
        """
        if fault is not None and fault.kind not in self.faults:
            can = ", ".join(sorted(self.faults))
            raise ValueError(f"{type(self).__name__} cannot {fault.kind!r}; it can {can}")
        self._countdown = FaultCountdown(fault)
        self._nursery: trio.Nursery | None = None
        self.open_lines = 0
        """How many connections are open."""
        self._disconnected = trio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        """Accept connections by `dial` while the block runs.

        Raises:
            AssertionError: Connections are still open five seconds after the end of the block.
        """
        left = 0
        async with open_service_nursery("the fake is closed") as self._nursery:
            try:
                yield self
                with trio.move_on_after(LEAVE_S):
                    while self.open_lines:
                        self._disconnected = trio.Event()
                        await self._disconnected.wait()
            finally:
                left = self.open_lines
        if left:
            raise AssertionError(f"{left} connections to {type(self).__name__} are left open")

    async def dial(self) -> trio.abc.Stream:
        """Connect in memory; pass this method as ``dial=`` to an ear or a voice.

        Raises:
            RuntimeError: The fake is not open.
        """
        if self._nursery is None:
            raise RuntimeError(f"{type(self).__name__} is closed: use `async with fake.open():`")
        await trio.lowlevel.checkpoint()
        ours, theirs = memory_stream_pair()
        self._nursery.start_soon(self.handle, ours)
        return theirs

    @asynccontextmanager
    async def serve(
        self, port: int = 0, *, ssl_context: ssl.SSLContext | None = None
    ) -> AsyncIterator[int]:
        """Serve real sockets on this machine while the block runs.

        Args:
            port: The port on 127.0.0.1; 0 chooses a free one.
            ssl_context: Serves TLS with this context; ``None`` serves without TLS.

        Yields:
            The port.
        """
        listeners: Any = (
            await trio.open_tcp_listeners(port, host="127.0.0.1")
            if ssl_context is None
            else await trio.open_ssl_over_tcp_listeners(port, ssl_context, host="127.0.0.1")
        )
        inner = listeners[0] if ssl_context is None else listeners[0].transport_listener
        async with open_service_nursery("the fake is closed") as nursery:
            await nursery.start(partial(trio.serve_listeners, self.handle, listeners))
            yield inner.socket.getsockname()[1]

    def refusal_without_key(self, head: str) -> tuple[int, Any] | None:
        """Return the status and the body for a request that brings no key; ``None`` for others.

        Args:
            head: The lines of the request.
        """
        return None if re.search(self.key, head, re.I | re.M) else (401, self.no_key)

    async def handle(self, stream: trio.abc.Stream) -> None:
        """Serve one connection.

        Args:
            stream: A new stream, from which nothing has been read.
        """
        raise NotImplementedError

    def _left(self, count: int = 1) -> None:
        self.open_lines -= count
        self._disconnected.set()
