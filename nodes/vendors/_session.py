"""A session with a vendor: a WebSocket that is opened again when it breaks.

Rule 1. One task opens the line, keeps it alive, and opens it again; whoever sends or receives waits
for that task.
Rule 2. What is sent to be kept stays in order until it is forgotten, at most `max_kept_bytes`.  A
new line begins with the greeting, and then with all that is kept.  While there is no line, what is
to be kept needs no wait: a microphone is never held up.
Rule 3. What the vendor refuses for good ends the session at once; any other trouble ends it after
`attempts` in a row.  Only a message from the vendor ends a row: a line that opens and breaks
proves nothing.
Rule 4. The key is in a header of the handshake, and in no error and no log line.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import final

import structlog
import trio

from bargein.bridge.websocket import (
    ConnectionClosedError,
    Data,
    HandshakeRefusedError,
    WebSocket,
    open_websocket,
)

from ._backoff import Backoff, retry_after_s
from ._errors import VendorError

log = structlog.get_logger()

_PASSING = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS}
"""Statuses below 500 that may be others the next time (RFC 9110, 15.5, and RFC 6585, 4)."""

Judge = Callable[[ConnectionClosedError], VendorError | None]
"""Says what it means that a vendor closed a line; None: nothing but that it is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorAddress:
    """Where a vendor is reached, and what it wants to be told first."""

    vendor: str
    """Its name, in errors and logs."""
    url: str
    """``wss://`` or ``ws://``, without secrets."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of the handshake; the key is one of them."""
    greeting: Sequence[Data] = ()
    """Messages with which every line begins."""
    keep_alive: Data | None = None
    """Sent when nothing else was for a while; None: nothing is."""
    farewell: Data | None = None
    """Sent before the session is closed; None: nothing is."""

    def __post_init__(self) -> None:
        """Check the address.

        Raises:
            ValueError: It is none of a WebSocket.
        """
        if not self.url.startswith(("ws://", "wss://")):
            shown = self.url.partition("?")[0]
            raise ValueError(f"the address of {self.vendor} is ws:// or wss://, not {shown!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """What a session may take; times in seconds."""

    connect_s: float = 5.0
    """Until a line is open."""
    keep_alive_s: float = 4.0
    """Silence of ours after which `VendorAddress.keep_alive` is sent: Deepgram wants one every 3
    to 5 s."""
    stall_s: float = 10.0
    """For how long a vendor may take nothing of what is sent, before the line counts as lost."""
    ping_s: float = 10.0
    """After how much silence a vendor is pinged, and how long its answer may take."""
    attempts: int = 4
    """How often in a row a line is opened before the session is given up."""
    first_wait_s: float = 0.25
    """Longest wait before the second attempt; doubled for each further one, with jitter."""
    max_wait_s: float = 4.0
    """Longest wait; a vendor that asks for more is not asked again."""
    max_message_bytes: int = 4_194_304
    """Largest message of the vendor's: 20 s of a voice at 48 kHz as base64 twice over."""
    max_waiting_bytes: int = 262_144
    """What may wait on either side before ``send`` waits, and before nothing more is read."""
    max_kept_bytes: int = 960_000
    """What may be kept to be sent again: 30 s of PCM16 at 16 kHz."""

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            ValueError: One is out of its bounds.
        """
        for name in self.__slots__:
            value = getattr(self, name)
            if not value > 0:
                raise ValueError(f"SessionLimits({name}=) is above 0, not {value!r}")


@final
@dataclass(frozen=True, slots=True)
class Reopened:
    """The line was lost and is open again; what the vendor knew of the session is gone."""

    missing_s: float
    """For how long there was none."""
    sent_again: int
    """How many kept messages the new line began with."""


@final
class VendorSession:
    """One session; made by `open_session`."""

    def __init__(
        self,
        address: VendorAddress,
        limits: SessionLimits,
        *,
        judge: Judge,
        dial: Callable[[], Awaitable[trio.abc.Stream]] | None,
        jitter: Callable[[], float],
    ) -> None:
        """Keep the address; `open_session` runs it."""
        self._address = address
        self._limits = limits
        self._judge = judge
        self._dial = dial
        self._backoff = Backoff(
            limits.attempts, limits.first_wait_s, limits.max_wait_s, random=jitter
        )
        self._line: WebSocket | None = None  # while one is open, for the receiver
        self._may_send = False  # and all that was kept has gone into it
        self._lost = trio.Event()
        self._changed = trio.Event()
        self._reopened: Reopened | None = None
        self._lost_at_s: float | None = None
        self._why_lost: VendorError | None = None
        self._error: VendorError | None = None
        self._is_closing = False
        self._failures = 0
        self._is_sound = False  # the vendor sent something, and nothing bad
        self._sent_at_s = 0.0
        self._kept: deque[tuple[int, Data]] = deque()
        self._kept_bytes = 0
        self._number = 0
        self.dropped = 0
        """How many kept messages were dropped because too much was kept."""

    # --- sending and receiving ------------------------------------------------------------------

    async def ready(self) -> None:
        """Wait until a line is open.

        Raises:
            VendorError: The session was given up.
        """
        while not self._may_send:
            await self._change()

    async def send(self, data: Data, *, keep: bool = False) -> int:
        """Send a message; waits while too much waits, or while there is no line.

        Cancelling it is safe: the message is sent and kept, or neither.

        Args:
            data: Text, or bytes for a binary message.
            keep: Whether a new line begins with it too, until it is forgotten.  Without a line such
                a message is only kept, without a wait.

        Returns:
            The number of the message that was kept last, for `forget`.

        Raises:
            VendorError: The session was given up.
        """
        await trio.lowlevel.checkpoint()
        while True:
            if self._error is not None:
                raise self._error
            line = self._line
            if line is not None and self._may_send:
                try:
                    await line.send(data)
                except ConnectionClosedError as closed:
                    self._lose(line, closed)
                    continue
                self._sent_at_s = trio.current_time()
                return self._keep(data) if keep else self._number
            if keep:
                return self._keep(data)
            await self._change()

    def forget(self, number: int | None = None) -> None:
        """Drop what is kept, as the vendor has dealt with it.

        Args:
            number: Up to and including the message that ``send`` numbered so; None drops all.
        """
        while self._kept and (number is None or self._kept[0][0] <= number):
            self._kept_bytes -= len(self._kept.popleft()[1])

    def reopen(self, why: VendorError) -> None:
        """Give the line up, and open another one if `why` is `retryable`.

        Args:
            why: What the vendor has said; raised by ``send`` and ``receive`` if this was the last
                attempt.
        """
        if self._line is not None:
            self._line.connection.cut("given up")
            self._is_sound = False
            self._give_up(why)

    async def receive(self) -> Data | Reopened:
        """Return the vendor's next message, or that the line was opened again.

        Cancelling it is safe: nothing is lost.

        Raises:
            VendorError: The session was given up, and all that came was taken.
        """
        while True:
            line = self._line
            if line is None:
                await self._change()
                continue
            if self._reopened is not None:
                reopened, self._reopened = self._reopened, None
                return reopened
            try:
                data = await line.receive()
            except ConnectionClosedError as closed:
                self._lose(line, closed)
                continue
            self._is_sound = True
            return data

    def _keep(self, data: Data) -> int:
        self._number += 1
        self._kept.append((self._number, data))
        self._kept_bytes += len(data)
        while self._kept_bytes > self._limits.max_kept_bytes and len(self._kept) > 1:
            self._kept_bytes -= len(self._kept.popleft()[1])
            self.dropped += 1
        return self._number

    async def _change(self) -> None:
        """Wait until something has changed.

        Raises:
            VendorError: The session was given up.
        """
        if self._error is not None:
            raise self._error
        await self._changed.wait()

    def _has_changed(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    # --- the line -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Open the line, again and again, until the session is given up."""
        while True:
            error = await self._serve_line()
            self._failures = 1 if self._is_sound else self._failures + 1
            self._is_sound = False
            wait_s = self._backoff.wait_s(error, self._failures)
            if wait_s is None:
                self._error = error
                self._has_changed()
                return
            log.warning(
                "vendor_line_lost",
                vendor=self._address.vendor,
                error=error.safe_text,
                again_in_s=round(wait_s, 3),
            )
            await trio.sleep(wait_s)

    async def _serve_line(self) -> VendorError:
        """Open one line and keep it alive; return why it is gone."""
        address, limits = self._address, self._limits
        try:
            async with open_websocket(
                address.url,
                headers=address.headers,
                connect_s=limits.connect_s,
                max_size=limits.max_message_bytes,
                max_waiting_bytes=limits.max_waiting_bytes,
                stall_s=limits.stall_s,
                ping_s=limits.ping_s,
                stream=await self._reach(),
            ) as line:
                try:
                    self._opened(line)
                    await self._greet(line)
                    await self._keep_alive(line)
                except ConnectionClosedError as closed:
                    self._lose(line, closed)
                finally:
                    with trio.move_on_after(self._limits.connect_s, shield=True):
                        await self._say_farewell(line)
            assert self._why_lost is not None
            return self._why_lost
        except HandshakeRefusedError as error:
            return _refused(address.vendor, error)
        except (OSError, trio.TooSlowError) as error:
            return VendorError(address.vendor, str(error) or type(error).__name__)
        finally:
            if self._lost_at_s is None and self._line is not None:
                self._lost_at_s = trio.current_time()
            self._line, self._may_send = None, False
            self._has_changed()

    async def _reach(self) -> trio.abc.Stream | None:
        if self._dial is None:
            return None
        with trio.fail_after(self._limits.connect_s):
            return await self._dial()

    def _opened(self, line: WebSocket) -> None:
        if self._lost_at_s is not None:
            missing_s = round(trio.current_time() - self._lost_at_s, 3)
            self._reopened = Reopened(missing_s, len(self._kept))
            log.info("vendor_line_reopened", vendor=self._address.vendor, missing_s=missing_s)
        self._line, self._lost_at_s, self._lost = line, None, trio.Event()
        self._has_changed()

    async def _greet(self, line: WebSocket) -> None:
        """Send the greeting, and all that is kept; what is kept meanwhile joins its end."""
        for data in self._address.greeting:
            await line.send(data)
        sent = 0
        while waiting := [(number, data) for number, data in self._kept if number > sent]:
            for number, data in waiting:
                await line.send(data)
                sent = number
        self._sent_at_s = trio.current_time()
        self._may_send = True
        self._has_changed()

    async def _keep_alive(self, line: WebSocket) -> None:
        """Stay until the line is lost.

        Raises:
            ConnectionClosedError: It was lost while something was sent.
        """
        keep_alive = self._address.keep_alive
        while not self._lost.is_set():
            due_s = math.inf if keep_alive is None else self._sent_at_s + self._limits.keep_alive_s
            if keep_alive is not None and trio.current_time() >= due_s:
                await line.send(keep_alive)
                self._sent_at_s = trio.current_time()
                continue
            with trio.move_on_at(due_s):
                await self._lost.wait()

    def _lose(self, line: WebSocket, closed: ConnectionClosedError) -> None:
        if line is self._line:
            self._give_up(self._closed(closed))

    def _give_up(self, why: VendorError) -> None:
        self._line, self._may_send = None, False
        self._lost_at_s = trio.current_time()
        self._why_lost = why
        self._lost.set()

    def _closed(self, closed: ConnectionClosedError) -> VendorError:
        judged = self._judge(closed)
        if judged is not None:
            return judged
        return VendorError(
            self._address.vendor,
            "it closed the line",
            status=closed.code,
            detail=closed.reason,
        )

    async def _say_farewell(self, line: WebSocket) -> None:
        farewell = self._address.farewell
        if self._is_closing and farewell is not None:
            with suppress(ConnectionClosedError):
                await line.send(farewell)

    def close(self) -> None:
        """Mean the next loss of the line: say farewell, and open no other."""
        self._is_closing = True


@asynccontextmanager
async def open_session(
    address: VendorAddress,
    limits: SessionLimits | None = None,
    *,
    judge: Judge = lambda closed: None,
    dial: Callable[[], Awaitable[trio.abc.Stream]] | None = None,
    jitter: Callable[[], float] = random.random,
) -> AsyncIterator[VendorSession]:
    """Hold a session with a vendor while the block runs.

    Entering the block does not wait for the line: `VendorSession.ready` does.  Leaving it takes as
    long as the closing handshake at most, also when it is cancelled.

    Args:
        address: Where, and what is said first.
        limits: What it may take; None for the defaults.
        judge: Says what a close of the vendor's means: a `VendorError` that is not `retryable` ends
            the session.
        dial: Opens the stream that carries the line; None dials the address, through the proxy that
            the environment names.
        jitter: Gives numbers from 0 to 1, for the waits between attempts.
    """
    session = VendorSession(
        address, limits or SessionLimits(), judge=judge, dial=dial, jitter=jitter
    )
    error: Exception | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(session.run)
        try:
            yield session
        except Exception as caught:  # noqa: BLE001  # raised below, past the nursery's group
            error = caught
        finally:
            session.close()
            nursery.cancel_scope.cancel(reason="the session is over")
    if error is not None:
        raise error


def _refused(vendor: str, error: HandshakeRefusedError) -> VendorError:
    passing = error.status >= 500 or error.status in _PASSING
    return VendorError(
        vendor,
        "it refused the connection",
        retryable=passing,
        status=error.status,
        detail=error.body.decode(errors="replace"),
        retry_after_s=retry_after_s({k.lower(): v for k, v in error.headers.raw_items()}),
    )
