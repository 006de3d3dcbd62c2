"""The one place where websockets.trio is wrapped.

``websockets.trio`` 17.4 has two properties a voice call cannot live with: a ``send()`` that is
cancelled half-way leaves half a frame on the wire and the connection open, and a ``send()`` that
is cancelled before it began is delivered later.  So:

Rule 1. A connection whose frame may be torn is closed at once (``SafeServer``, ``SafeClient``).
Rule 2. One task of a connection writes, the ``Outbox``'s; everybody else queues, without waiting.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol, final

import trio
from websockets.exceptions import ConnectionClosed
from websockets.trio.client import ClientConnection
from websockets.trio.connection import Connection
from websockets.trio.server import ServerConnection

Data = str | bytes
"""One WebSocket message: text or binary."""

CLOSE_GRACE_S = 2.0
"""Longest time that closing a TLS or TCP stream may take before it is cut off."""


class Safe(Connection):
    """A connection that is closed, never half-written, when a task using it is cancelled."""

    async def close_stream(self) -> None:
        """Close the stream and wake who waits for it, also when cancelled."""
        with trio.move_on_after(CLOSE_GRACE_S, shield=True) as scope:
            await super().close_stream()
        if scope.cancelled_caught:
            with trio.CancelScope(shield=True):  # no deadline: both calls return at once
                await trio.aclose_forcefully(self.stream)
                await super().close_stream()

    async def send_data(self) -> None:
        """Write what is due; when cancelled meanwhile, close the stream."""
        try:
            await super().send_data()
        except trio.Cancelled:
            # Half a frame may be on the wire: whatever is written next would be read as its rest.
            with trio.CancelScope(shield=True):  # no deadline: closing by force never waits
                await trio.aclose_forcefully(self.stream)
            raise


class SafeServer(Safe, ServerConnection):
    """The server's end of a connection."""


class SafeClient(Safe, ClientConnection):
    """The client's end of a connection."""


class Sending(Protocol):
    """What an outbox needs of a connection."""

    def send(self, message: Data) -> Awaitable[None]:
        """Hand one message to the kernel, waiting while the peer does not read."""


@final
class Outbox:
    """The only sender of a connection: a bounded queue and the task that empties it.

    Queueing is synchronous, so whoever queues may be cancelled at will.  When the peer reads too
    slowly for the bound, or not at all for ``stall_s``, the outbox breaks: it calls ``on_broken``
    once, drops what it has and takes nothing more.

    Attributes:
        dropped: Messages that were queued or offered and never sent.
        sent: Messages handed to the kernel.
        on_next: Told of each message just before it is sent, in order.
        spare: Asked for a message whenever none waits to be sent; it may give none.
        finished: Set once ``run`` has returned.
    """

    def __init__(
        self,
        connection: Sending,
        *,
        max_bytes: int = 1_000_000,
        stall_s: float | None = 10.0,
        on_broken: Callable[[str], None] = lambda reason: None,
    ) -> None:
        """Keep the connection; nothing is sent before ``run``.

        Args:
            connection: Where messages go.
            max_bytes: Bytes (characters of text) that may wait; more breaks the outbox.
                1 MB is 20 s of 24 kHz audio.
            stall_s: Seconds that one message may take to leave; None waits for ever.
            on_broken: Called with ``"overflow"``, ``"stalled"`` or ``"closed"`` when the peer is
                lost; must not raise.
        """
        self.dropped = 0
        self.sent = 0
        self.finished = trio.Event()
        self.on_next: Callable[[Data], None] = lambda data: None
        self.spare: Callable[[], Data | None] = lambda: None
        self._connection = connection
        self._max_bytes = max_bytes
        self._stall_s = stall_s
        self._on_broken = on_broken
        self._urgent: deque[Data] = deque()
        self._queue: deque[tuple[int | None, Data]] = deque()
        self._waiting_bytes = 0
        self._wake = trio.Event()
        self._closing = False
        self._broken = False

    @property
    def waiting(self) -> int:
        """Messages that wait to be sent."""
        return len(self._urgent) + len(self._queue)

    def put(self, data: Data, *, utterance: int | None = None) -> None:
        """Queue a message behind those that wait.

        Args:
            data: The message.
            utterance: The utterance whose audio this is; None for what ``drop_audio`` must keep.
        """
        if self._admit(data):
            self._queue.append((utterance, data))
            self._wake.set()

    def put_first(self, data: Data) -> None:
        """Queue a message in front of all that wait, behind earlier ones queued like this."""
        if self._admit(data):
            self._urgent.append(data)
            self._wake.set()

    def drop_audio(self, fence: int) -> int:
        """Drop the audio that waits, of all utterances up to and including ``fence``.

        Args:
            fence: The number of an utterance.

        Returns:
            How many messages were dropped.
        """
        kept: deque[tuple[int | None, Data]] = deque()
        for utterance, data in self._queue:
            if utterance is not None and utterance <= fence:
                self._waiting_bytes -= len(data)
            else:
                kept.append((utterance, data))
        dropped = len(self._queue) - len(kept)
        self._queue = kept
        self.dropped += dropped
        return dropped

    def wake(self) -> None:
        """Look for something to send; for who has it in `spare`."""
        self._wake.set()

    def take_over(self, other: Outbox, before: Iterable[tuple[int | None, Data]] = ()) -> None:
        """Queue what waits in another outbox, which breaks without telling anybody.

        Args:
            other: The outbox of a connection that is lost or given up; its counts go over too.
            before: Messages to queue in front of those, each behind its utterance or None.
        """
        for utterance, data in before:
            self._queue.append((utterance, data))
            self._waiting_bytes += len(data)
        self._urgent.extend(other._urgent)
        self._queue.extend(other._queue)
        self._waiting_bytes += other._waiting_bytes
        self.dropped += other.dropped
        self.sent += other.sent
        other._urgent.clear()
        other._queue.clear()
        other._waiting_bytes = 0
        other._broken = True
        other._wake.set()
        self._wake.set()

    def close(self) -> None:
        """Take nothing more; ``run`` returns once all that waits is sent."""
        self._closing = True
        self._wake.set()

    async def run(self) -> None:
        """Send what is queued until closed or broken.

        Belongs into the nursery of the connection, not of a turn: cancelling it tears the frame
        being sent and so closes the connection.
        """
        try:
            while not self._broken:
                data = self._next()
                if data is not None:
                    self.on_next(data)
                    await self._send(data)
                elif self._closing:
                    break
                else:
                    self._wake = trio.Event()
                    await self._wake.wait()
        finally:
            self.finished.set()

    async def _send(self, data: Data) -> None:
        deadline = float("inf") if self._stall_s is None else trio.current_time() + self._stall_s
        try:
            with trio.CancelScope(deadline=deadline) as scope:
                await self._connection.send(data)
                self.sent += 1
        except ConnectionClosed:
            self._break("closed")
        if scope.cancelled_caught:
            self._break("stalled")

    def _next(self) -> Data | None:
        if self._urgent:
            data = self._urgent.popleft()
        elif self._queue:
            _, data = self._queue.popleft()
        else:
            return None if self._closing else self.spare()
        self._waiting_bytes -= len(data)
        return data

    def _admit(self, data: Data) -> bool:
        if self._broken or self._closing:
            self.dropped += 1
            return False
        if self._waiting_bytes + len(data) > self._max_bytes:
            self.dropped += 1
            self._break("overflow")
            return False
        self._waiting_bytes += len(data)
        return True

    def _break(self, reason: str) -> None:
        if self._broken:
            return
        self._broken = True
        self._on_broken(reason)  # who hears of it may take over what waits
        self.dropped += self.waiting
        self._urgent.clear()
        self._queue.clear()
        self._waiting_bytes = 0
        self._wake.set()
