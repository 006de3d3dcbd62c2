"""A session with a vendor: a WebSocket that is opened again when it breaks.

Rule 1. One task opens the line, keeps it alive, and opens it again; whoever sends or receives waits
for that task.
Rule 2. What is sent to be kept stays in order until it is forgotten, at most `max_kept_bytes`.  A
new line begins with the greeting, and then with all that is kept.  While there is no line, what is
to be kept needs no wait: a microphone is never held up.
Rule 3. What the vendor refuses for good ends the session at once; any other trouble ends it after
`attempts` in a row.  Only a message from the vendor ends a row, or `SOUND_S` of a line: a line that
opens and breaks proves nothing, and neither does a greeting.
Rule 4. The key is in a header of the handshake, and in no error and no log line.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
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
from ._session_settings import SessionLimits, VendorAddress

log = structlog.get_logger()

_PASSING = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS}
"""Statuses below 500 that may be others the next time (RFC 9110, 15.5, and RFC 6585, 4)."""

SOUND_S = 30.0
"""A line that has lasted so long was no failure, even if nothing was to be said."""

Judge = Callable[[ConnectionClosedError], VendorError | None]
"""Says what it means that a vendor closed a line; None: nothing but that it is closed."""


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
        self._opened_at_s = self._given_up_at_s = math.inf
        self._revived = trio.Event()
        self._why_lost: VendorError | None = None
        self._error: VendorError | None = None
        self._is_closing = False
        self._failures = 0
        self._is_sound = False  # the vendor sent something, and nothing bad
        self._was_sound = False  # before the newest message
        self._sent_at_s = 0.0
        self._kept: deque[tuple[int, Data]] = deque()
        self._kept_bytes = 0
        self._number = 0
        self.lines = 0
        """How many lines were opened."""
        self._known_line = 1  # the first, or the one of which the receiver was told last
        self.heard_at_s = -math.inf
        """When the vendor sent its newest message, by trio's clock."""
        self.dropped = 0
        """How many kept messages were dropped because too much was kept."""

    @property
    def is_open(self) -> bool:
        """Whether there is a line, and all that was kept has gone into it."""
        return self._may_send

    # --- sending and receiving ------------------------------------------------------------------

    async def ready(self) -> None:
        """Wait until a line is open.

        Raises:
            VendorError: The session was given up.
        """
        while not self._may_send:
            await self._change()

    async def send(self, data: Data, *, keep: bool = False) -> int:
        """Send a message; waits while too much waits, or for the first line.

        Cancelling it is safe: the message is sent and kept, or neither.

        Args:
            data: Text, or bytes for a binary message.
            keep: Whether a new line begins with it too, until it is forgotten.  Without a line such
                a message is only kept, without a wait.  A message that is not kept is for the line
                of which `receive` has told last: it is dropped if that is lost.

        Returns:
            The number of the message that was kept last, for `forget`.

        Raises:
            VendorError: The session was given up.
        """
        number = self._known_line
        if not keep:
            while self.lines < number:
                await self._change()
            await self.send_on(number, data)
            return self._number
        await trio.lowlevel.checkpoint()
        if self._error is not None:
            raise self._error
        line = self._line
        if line is not None and self._may_send:
            try:
                await line.send(data)
                self._sent_at_s = trio.current_time()
            except ConnectionClosedError as closed:
                self._lose(line, closed)
        return self._keep(data)

    async def send_on(self, number: int, data: Data) -> bool:
        """Send a message on one line, and on no later one.

        Cancelling it is safe: the message is sent or not.

        Args:
            number: What `lines` was when this line was opened.
            data: As for `send`.

        Returns:
            Whether it was sent: False if that line is lost.

        Raises:
            VendorError: The session was given up.
        """
        await trio.lowlevel.checkpoint()
        while self._line is not None and number == self.lines:
            if not self._may_send:
                await self._change()
                continue
            line = self._line
            try:
                await line.send(data)
            except ConnectionClosedError as closed:
                self._lose(line, closed)
                break
            self._sent_at_s = trio.current_time()
            return True
        if self._error is not None:
            raise self._error
        return False

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

    def doubt(self) -> None:
        """Take the message that came last for no sign that the line is sound: a greeting, say."""
        self._is_sound = self._was_sound

    def revive(self) -> bool:
        """Try again to open a line, if the session was given up a while ago.

        Returns:
            Whether it is alive: False until the longest wait has passed since it was given up.
        """
        if self._error is None:
            return True
        if trio.current_time() - self._given_up_at_s < self._limits.max_wait_s:
            return False
        self._error, self._failures = None, 0
        self._revived.set()
        return True

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
                self._known_line = self.lines
                return reopened
            try:
                data = await line.receive()
            except ConnectionClosedError as closed:
                self._lose(line, closed)
                continue
            self._was_sound, self._is_sound = self._is_sound, True
            self.heard_at_s = trio.current_time()
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
        """Open the line, again and again; wait to be revived while the session is given up."""
        while True:
            error = await self._serve_line()
            is_old = trio.current_time() - self._opened_at_s >= SOUND_S
            self._failures = 1 if self._is_sound or is_old else self._failures + 1
            self._is_sound, self._opened_at_s = False, math.inf
            wait_s = self._backoff.wait_s(error, self._failures)
            if wait_s is None:
                self._error, self._given_up_at_s = error, trio.current_time()
                self._revived = trio.Event()
                self._has_changed()
                await self._revived.wait()
                continue
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
        self._opened_at_s = trio.current_time()
        self.lines += 1
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
