"""The socket of one utterance: its session with the vendor, and who reads what comes.

A line counts as sound once it has brought audio; a greeting proves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, final

import structlog
import trio

from bargein.nodes.vendors import (
    Reopened,
    SessionLimits,
    VendorAddress,
    VendorError,
    VendorSession,
    open_session,
)

from ._flush_limit import FlushLimit

log = structlog.get_logger()


class SocketReader(Protocol):
    """The utterance that a socket works for."""

    def hear(self, data: bytes) -> None:
        """Handle audio."""
        ...

    def read(self, message: Mapping[str, Any]) -> bool:
        """Handle a message of the vendor's; return whether it answers a flush."""
        ...

    async def send_waiting(self) -> None:
        """Send what waited for an answer or for another line."""
        ...

    def fail(self, error: VendorError) -> None:
        """Make whoever waits for audio raise this error."""
        ...


@final
class UtteranceSocket:
    """One socket, and the utterance on it; it opens another line when one is lost."""

    def __init__(
        self,
        address: VendorAddress,
        limits: SessionLimits,
        flush_limit: FlushLimit,
        dial: Callable[[], Awaitable[trio.abc.Stream]] | None,
    ) -> None:
        self.address = address
        self.url = address.url
        self.flush_limit = flush_limit
        self._limits = limits
        self._dial = dial
        self._scope = trio.CancelScope()
        self._context: SocketReader | None = None
        self._session: VendorSession | None = None
        self._opened = trio.Event()
        self._error: VendorError | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the session was given up or closed."""
        return self._error is not None or self._scope.cancel_called

    @property
    def is_of_use(self) -> bool:
        """Whether another utterance can use the socket."""
        return not self.is_lost and not self.flush_limit.is_scarce

    def follow(self, context: SocketReader | None) -> None:
        """Route what the vendor sends to an utterance; ``None`` routes it nowhere."""
        self._context = context

    def close(self) -> None:
        """Close the socket at once."""
        self._scope.cancel(reason="the utterance was cut")

    @property
    def lines(self) -> int:
        """The number of lines opened so far."""
        return 0 if self._session is None else self._session.lines

    async def ready(self) -> None:
        """Wait until a line is open.

        Raises:
            VendorError: The session was given up.
        """
        await self._opened.wait()
        if self._error is not None:
            raise self._error
        assert self._session is not None  # it is open
        await self._session.ready()

    async def send_on(self, line: int, message: str) -> bool:
        """Send a message on one line, and on no later one; return whether it was sent.

        Raises:
            VendorError: The session was given up.
        """
        assert self._session is not None  # a line was opened before
        return await self._session.send_on(line, message)

    async def run(self) -> None:
        """Run the session until it is given up or closed."""
        with self._scope:
            async with open_session(self.address, self._limits, dial=self._dial) as session:
                self._session = session
                self._opened.set()
                try:
                    while True:
                        if not await self._hear(await session.receive()):
                            session.doubt()
                except VendorError as error:
                    self._error = error
                    if self._context is not None:
                        self._context.fail(error)

    async def _hear(self, data: str | bytes | Reopened) -> bool:
        """Pass a message or audio to the utterance; return whether it was part of its speech."""
        context = self._context
        if context is None:
            return False
        if isinstance(data, Reopened):
            await context.send_waiting()
            return True
        if isinstance(data, bytes):
            context.hear(data)
            return True
        is_answer = False
        try:
            message = json.loads(data)
            if not isinstance(message, dict):
                raise TypeError("no object")
            is_answer = context.read(message)
        except (KeyError, TypeError, ValueError, IndexError, RecursionError) as error:
            kind = type(error).__name__
            log.warning("vendor_message_unreadable", vendor=self.address.vendor, error=kind)
        if is_answer:
            await context.send_waiting()
        return is_answer
