"""Voices of vendors: many utterances at once over one socket, and what a codec has to know of one.

Rule 1. A codec does no I/O: it makes the messages of one context, and pieces of their answers.
Rule 2. A vendor's message goes to the context that it names.  One for a context that is over is
dropped: it is late audio of something that was cut.
Rule 3. After a line was lost, a context of which nothing has come begins anew on the next line;
one of which something has come fails, as nobody knows what is missing.
Rule 4. A context holds at most `MOST_WAITING_S` of audio that nobody has taken.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, Literal, Protocol, final

import structlog
import trio

from bargein.bridge.websocket import ConnectionClosedError
from bargein.nodes.speech import SpeechNotOpenError, SpeechPiece, TextSaid, VoiceStyle
from bargein.nodes.vendors import (
    Reopened,
    SessionLimits,
    VendorAddress,
    VendorError,
    VendorSession,
    open_session,
)

log = structlog.get_logger()

MOST_WAITING_S = 120.0
"""So much audio of one utterance may wait; who is so far behind will not catch up."""

CANCEL_S = 1.0
"""How long telling a vendor that a context is cancelled may take; it is only put in line."""

Piece = SpeechPiece | TextSaid | None
"""What a codec makes of a vendor's message; None: all was said."""


class VoiceCodec(Protocol):
    """The messages of one vendor, for one context."""

    def text(self, text: str) -> Sequence[str]:
        """Return the messages that add text; the first ones open the context."""
        ...

    def flush(self) -> Sequence[str]:
        """Return the messages that have all text said at once."""
        ...

    def end(self) -> Sequence[str]:
        """Return the messages that tell that no more text will come."""
        ...

    def cancel(self) -> Sequence[str]:
        """Return the messages that stop the context; empty if it was never opened."""
        ...

    def pieces(self, message: Mapping[str, Any]) -> Iterable[Piece]:
        """Yield what a message brings.

        Args:
            message: A JSON object that names this context; nothing else of it is certain.

        Raises:
            VendorError: The vendor gives the context up.
            Exception: `message` is none of its messages: KeyError, TypeError, ValueError.
        """
        ...


class VendorVoice:
    """A `StreamingTTS` behind one WebSocket of a vendor's; open it before use."""

    def __init__(
        self,
        address: VendorAddress,
        codec: Callable[[str, VoiceStyle], VoiceCodec],
        context_of: Callable[[Mapping[str, Any]], str | None],
        *,
        sample_rate_hz: int,
        times: Literal["words", "none"],
        limits: SessionLimits | None = None,
        judge: Callable[[ConnectionClosedError], VendorError | None] = lambda closed: None,
        dial: Callable[[], Awaitable[trio.abc.Stream]] | None = None,
    ) -> None:
        """Settle whom to ask; connects nowhere.

        Args:
            address: Where, and with which key.
            codec: Makes the codec of a context, from its name and its style.
            context_of: Returns which context a message is of; None for those of none.
            sample_rate_hz: Of the pieces.
            times: What is known of when each word is heard.
            limits: What a session may take; None for the defaults.
            judge: Says what a close of the vendor's means; see `open_session`.
            dial: Opens the stream that carries a line; None dials the address.
        """
        self._address = address
        self._codec = codec
        self._context_of = context_of
        self._sample_rate_hz = sample_rate_hz
        self._times: Literal["words", "none"] = times
        self._limits = limits
        self._judge = judge
        self._dial = dial
        self._session: VendorSession | None = None
        self._contexts: dict[str, VendorVoiceContext] = {}
        self._numbers = count(1)
        self._error: VendorError | None = None

    @property
    def sample_rate_hz(self) -> int:
        """Sample rate of the pieces."""
        return self._sample_rate_hz

    @property
    def times(self) -> Literal["words", "none"]:
        """What is known of when each word is heard."""
        return self._times

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Hold the socket while the block runs; it does not wait for the line."""
        self._error = None
        raised: Exception | None = None
        async with (
            open_session(
                self._address, self._limits, judge=self._judge, dial=self._dial
            ) as self._session,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(self._read, self._session)
            try:
                yield
            except Exception as caught:  # noqa: BLE001  # raised below, past the nursery's group
                raised = caught
            finally:
                self._session = None
                nursery.cancel_scope.cancel(reason="the voice is closed")
        if raised is not None:
            raise raised

    @asynccontextmanager
    async def open_context(self, style: VoiceStyle) -> AsyncIterator[VendorVoiceContext]:
        """Say one utterance while the block runs; see `StreamingTTS.open_context`.

        Raises:
            SpeechNotOpenError: The voice is not open.
            VendorError: The session was given up.
        """
        session = self._session
        if session is None:
            raise SpeechNotOpenError(type(self).__name__)
        if self._error is not None:
            raise self._error
        name = f"utterance-{next(self._numbers)}"
        make = lambda: self._codec(name, style)  # noqa: E731  # made anew after a lost line
        most_bytes = round(MOST_WAITING_S * 2 * self._sample_rate_hz)
        context = VendorVoiceContext(self._address.vendor, session, make, most_bytes)
        self._contexts[name] = context
        try:
            yield context
        finally:
            del self._contexts[name]
            with trio.move_on_after(CANCEL_S, shield=True):
                await context.cancel()

    async def _read(self, session: VendorSession) -> None:
        try:
            while True:
                data = await session.receive()
                if isinstance(data, Reopened):
                    for context in (*self._contexts.values(),):
                        await context.begin_again()
                elif isinstance(data, str):
                    self._route(data)
        except VendorError as error:
            self._error = error
            for context in self._contexts.values():
                context.fail(error)

    def _route(self, text: str) -> None:
        try:
            message = json.loads(text)
            if not isinstance(message, dict):
                raise TypeError("no object")
            name = self._context_of(message)
            context = self._contexts.get(name) if name is not None else None
            if context is not None:
                context.read(message)
            elif (
                name is None
                and len(self._contexts) == 1
                and "error" in (message.get("type"), *message)
            ):
                next(iter(self._contexts.values())).read(message)
        except (KeyError, TypeError, ValueError, IndexError, RecursionError) as error:
            kind = type(error).__name__
            log.warning("vendor_message_unreadable", vendor=self._address.vendor, error=kind)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self._address.url.partition('?')[0]}>"


@final
class VendorVoiceContext:
    """One utterance on its way through a vendor's voice; see `VoiceContext`."""

    def __init__(
        self,
        vendor: str,
        session: VendorSession,
        codec: Callable[[], VoiceCodec],
        most_waiting_bytes: int,
    ) -> None:
        """Keep the session, which others run."""
        self._vendor = vendor
        self._session = session
        self._new_codec = codec
        self._codec = codec()
        self._most_bytes = most_waiting_bytes
        self._asked: list[tuple[Literal["text", "flush", "end"], str]] = []
        self._pieces: deque[Piece] = deque()
        self._waiting_bytes = 0
        self._news = trio.Event()
        self._error: VendorError | None = None
        self._has_begun = self._is_over = False
        self._flushes = 0  # without an answer
        self._is_ended = False

    # --- for who speaks -------------------------------------------------------------------------

    async def send(self, text: str) -> None:
        """Add text; see `VoiceContext.send`."""
        await self._ask("text", text)

    async def flush(self) -> None:
        """Have all that was sent said; see `VoiceContext.flush`."""
        await self._ask("flush")

    async def end(self) -> None:
        """Tell that no more text will come; see `VoiceContext.end`."""
        await self._ask("end")

    async def receive(self) -> Piece:
        """Return the next piece; see `VoiceContext.receive`."""
        await trio.lowlevel.checkpoint()
        while not self._pieces:
            if self._error is not None:
                raise self._error
            if self._is_over:
                return None
            self._news = trio.Event()
            await self._news.wait()
        piece = self._pieces.popleft()
        if isinstance(piece, SpeechPiece):
            self._waiting_bytes -= len(piece.pcm)
        return piece

    async def _ask(self, what: Literal["text", "flush", "end"], text: str = "") -> None:
        if self._error is not None:
            raise self._error
        self._asked.append((what, text))
        self._flushes += what == "flush"
        self._is_ended = what == "end"
        await self._send(what, text)

    async def _send(self, what: Literal["text", "flush", "end"], text: str) -> None:
        codec = self._codec
        messages = codec.text(text) if what == "text" else getattr(codec, what)()
        for message in messages:
            await self._session.send(message)

    # --- for the voice --------------------------------------------------------------------------

    def read(self, message: Mapping[str, Any]) -> None:
        """Take in a message of the vendor's."""
        try:
            pieces = [*self._codec.pieces(message)]
        except VendorError as error:
            self.fail(error)
            return
        for piece in pieces:
            self._has_begun = True
            self._pieces.append(piece)
            if piece is None:
                self._is_over = True
            elif isinstance(piece, TextSaid):
                self._flushes -= 1
            else:
                self._waiting_bytes += len(piece.pcm)
        if self._waiting_bytes > self._most_bytes:
            self.fail(VendorError(self._vendor, f"{MOST_WAITING_S:g} s of its audio wait"))
        self._news.set()

    async def begin_again(self) -> None:
        """Ask for all of it on another line, if nothing has come yet."""
        if self._is_over:
            return
        if self._has_begun:
            self.fail(VendorError(self._vendor, "the line was lost in mid-utterance"))
            return
        self._codec = self._new_codec()
        for what, text in (*self._asked,):
            await self._send(what, text)

    def fail(self, error: VendorError) -> None:
        """Let who waits for audio know that no more will come."""
        self._error = self._error or error
        self._news.set()

    async def cancel(self) -> None:
        """Stop the context at the vendor's, if it has not ended."""
        all_said = self._is_ended and not self._flushes
        if self._is_over or all_said or self._error is not None:
            return
        self._is_over = True
        for message in self._codec.cancel():
            await self._session.send(message)
