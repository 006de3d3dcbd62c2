"""The driver of voices that say many utterances over one socket, and the protocol of their codecs.

Rule 1. A codec does no I/O: it writes the messages of one context and reads pieces from the
answers.
Rule 2. A context stays on one line. If no line has room, another one is opened.
Rule 3. When a line is lost, a context without any audio starts over on the next line; one with some
audio fails, because nobody knows what is missing.
Rule 4. A context holds at most `MOST_WAITING_S` of audio that nobody has received.
Rule 5. A vendor that owes audio and sends none for `SessionLimits.answer_s` has failed.
Rule 6. Text without words is never sent: its flush is answered at once.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any, Literal, Protocol, final

import trio

from bargein.bridge.websocket import ConnectionClosedError
from bargein.nodes.speech import SpeechNotOpenError, SpeechPiece, TextSaid, VoiceStyle
from bargein.nodes.vendors import (
    SessionLimits,
    VendorAddress,
    VendorError,
    VendorSession,
    in_order,
    open_session,
)
from bargein.routes.service_nursery import open_service_nursery

from ._voice_connection import OTHER_STYLE_S, SPARE_S, ContextLimit, VoiceLine

MOST_WAITING_S = 120.0
"""How much audio of an utterance may wait, in seconds; a reader this late never catches up."""

CANCEL_S = 1.0
"""How long sending a cancel may take, in seconds; it only has to be queued."""

Asked = Literal["text", "flush", "end"]

Piece = SpeechPiece | TextSaid | None
"""What a codec reads from a message; ``None`` when all was said."""


class VoiceCodec(Protocol):
    """Translates between one context and a vendor's messages."""

    def text(self, text: str) -> Sequence[str]:
        """Return the messages that add text; the first ones open the context."""
        ...

    def flush(self) -> Sequence[str]:
        """Return the messages that make the vendor say all text so far."""
        ...

    def end(self) -> Sequence[str]:
        """Return the messages that say that no more text will come."""
        ...

    def cancel(self) -> Sequence[str]:
        """Return the messages that stop the context; empty if it was never opened."""
        ...

    def pieces(self, message: Mapping[str, Any]) -> Iterable[Piece]:
        """Yield the pieces in a message.

        Args:
            message: A JSON object that names this context, otherwise unchecked.

        Raises:
            VendorError: The vendor gave up the context.
            Exception: `message` is not one of the vendor's: KeyError, TypeError, ValueError.
        """
        ...


class VendorVoice:
    """A `StreamingTTS` over a vendor's WebSocket, shared by all utterances; open it before use."""

    def __init__(
        self,
        address: VendorAddress | Callable[[VoiceStyle], VendorAddress],
        codec: Callable[[str, VoiceStyle], VoiceCodec],
        context_of: Callable[[Mapping[str, Any]], str | None],
        *,
        sample_rate_hz: int,
        times: Literal["words", "none"],
        limits: SessionLimits | None = None,
        limit: ContextLimit | None = None,
        judge: Callable[[ConnectionClosedError], VendorError | None] = lambda closed: None,
        dial: Callable[[], Awaitable[trio.abc.Stream]] | None = None,
    ) -> None:
        """Configure the voice; nothing connects yet.

        Args:
            address: Where to connect, and the key; a function if that depends on the style. Each
                address has its own socket while it is used.
            codec: Makes the codec of a context from its name and style.
            context_of: Returns the context that a message belongs to; ``None`` if it belongs to
                none.
            sample_rate_hz: Sample rate of the audio.
            times: Whether the vendor reports the times of words.
            limits: The limits of a session; ``None`` for the defaults.
            limit: How many contexts the vendor allows on a line; ``None`` for no limit.
            judge: Returns what a close by the vendor means; see `open_session`.
            dial: Opens the stream of a connection; ``None`` connects to the address.
        """
        self._address_of = address if callable(address) else lambda style: address
        self._address = self._address_of(VoiceStyle())
        self._codec = codec
        self._context_of = context_of
        self._sample_rate_hz = sample_rate_hz
        self._times: Literal["words", "none"] = times
        self._limits = limits or SessionLimits()
        self._judge = judge
        self._dial = dial
        self._limit = limit
        self._lines: list[VoiceLine] = []
        self._nursery: trio.Nursery | None = None
        self._opening = trio.Lock()
        self._numbers = count(1)

    @property
    def sample_rate_hz(self) -> int:
        """Sample rate of the audio."""
        return self._sample_rate_hz

    @property
    def times(self) -> Literal["words", "none"]:
        """Whether the vendor reports the times of words."""
        return self._times

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep the voice open while the block runs; entering does not wait for the line."""
        async with open_service_nursery("the voice is closed") as nursery:
            await nursery.start(self._serve_line, self._address, VoiceLine.run)
            nursery.start_soon(self._watch)
            self._nursery = nursery
            try:
                yield
            finally:
                self._nursery = None
                for line in self._lines:
                    line.session.close()

    async def _serve_line(
        self,
        address: VendorAddress,
        run: Callable[[VoiceLine], Awaitable[None]],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Keep a line open while `run` runs."""
        async with open_session(
            address, self._limits, judge=self._judge, dial=self._dial
        ) as session:
            line = VoiceLine(address.vendor, session, self._context_of, self._limit, address.url)
            self._lines.append(line)
            try:
                task_status.started()
                await run(line)
            finally:
                self._lines.remove(line)

    async def _watch(self) -> None:
        """Fail contexts whose audio is overdue.

        A deadline set during a sleep is never earlier than the end of that sleep.
        """
        while True:
            next_s = trio.current_time() + self._limits.answer_s
            for line in self._lines:
                next_s = min(next_s, line.give_up_late())
            await trio.sleep_until(next_s)

    @asynccontextmanager
    async def open_context(self, style: VoiceStyle) -> AsyncIterator[VendorVoiceContext]:
        """Say one utterance while the block runs; see `StreamingTTS.open_context`.

        Raises:
            SpeechNotOpenError: The voice is not open.
            VendorError: The session was given up.
        """
        line = await self._line_with_room(self._address_of(style))
        line.check()
        name = f"utterance-{next(self._numbers)}"
        make = lambda: self._codec(name, style)  # noqa: E731  # made again after a lost line
        context = VendorVoiceContext(
            self._address.vendor, line.session, make, self._sample_rate_hz, self._limits.answer_s
        )
        line.join(name, context)
        try:
            yield context
        finally:
            line.leave(name)
            with trio.move_on_after(CANCEL_S, shield=True):
                await context.cancel()

    async def _line_with_room(self, address: VendorAddress) -> VoiceLine:
        """Return a line with room for another context; open one if there is none.

        Raises:
            SpeechNotOpenError: The voice is not open.
        """
        unused_s = SPARE_S if address.url == self._address.url else OTHER_STYLE_S
        while self._nursery is not None:
            if (line := self._free_line(address.url)) is not None:
                return line
            async with self._opening:  # the one before may have opened a line with room
                if self._free_line(address.url) is None:
                    await self._nursery.start(
                        self._serve_line, address, lambda line: line.run_for_a_while(unused_s)
                    )
        raise SpeechNotOpenError(type(self).__name__)

    def _free_line(self, url: str) -> VoiceLine | None:
        return next((line for line in self._lines if line.url == url and line.has_room()), None)

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
        sample_rate_hz: int,
        answer_s: float,
    ) -> None:
        """Keep the session, which `open_session` runs."""
        self._vendor = vendor
        self._session = session
        self._new_codec = codec
        self._codec = codec()
        self._sample_rate_hz = sample_rate_hz
        self._most_bytes = round(MOST_WAITING_S * 2 * sample_rate_hz)
        self._answer_s = answer_s
        self._asked: list[tuple[Asked, str]] = []
        self._sent = 0  # how many of them were sent on the line
        self._line = 0  # the number of that line
        self._sending = trio.Lock()
        self._blank = ""  # spaces held back until a word comes
        self._has_words = False  # since the last flush
        self._pieces: deque[Piece] = deque()
        self._waiting_bytes = 0
        self._news = trio.Event()
        self._error: VendorError | None = None
        self._has_begun = self._is_over = False
        self._has_sent = self._is_final = False  # on this line
        self._flushes: deque[int] = deque()  # how many of ours each unanswered one covers
        self._is_ended = False
        self._heard_at_s = math.inf
        self._audio_s = self._word_s = 0.0  # length of all audio, and the start of its last word

    # --- for the speaker ------------------------------------------------------------------------

    async def send(self, text: str) -> None:
        """Add text; see `VoiceContext.send`."""
        text = self._blank + text
        if text.strip():
            await self._ask("text", text)
            self._blank, self._has_words = "", True
        else:
            await self._check()
            self._blank = text

    async def flush(self) -> None:
        """Have all text so far said; see `VoiceContext.flush`."""
        if self._has_words:
            await self._ask("flush")
            self._has_words = False
            return
        await self._check()
        if self._flushes:
            self._flushes[-1] += 1
        else:
            self._add(TextSaid())

    async def end(self) -> None:
        """Say that no more text will come; see `VoiceContext.end`."""
        if self._asked:
            await self._ask("end")
            return
        await self._check()
        self._is_over = True
        self._news.set()

    async def receive(self) -> Piece:
        """Return the next piece; see `VoiceContext.receive`."""
        if self._pieces or self._error is not None or self._is_over:
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

    async def _check(self) -> None:
        if self._error is not None:
            raise self._error
        await trio.lowlevel.checkpoint()

    async def _ask(self, what: Asked, text: str = "") -> None:
        """Queue a request and send it; if cancelled before it is sent, it is withdrawn."""
        if self._error is not None:
            raise self._error
        if self._is_over:
            return
        if not (self._flushes or self._is_ended):
            self._heard_at_s = trio.current_time()  # from now on the vendor owes something
        number = len(self._asked)
        self._asked.append((what, text))
        if what == "flush":
            self._flushes.append(1)
        self._is_ended |= what == "end"
        try:
            await self._push()
        except trio.Cancelled:
            if self._sent <= number:
                self._withdraw_request()
            raise

    def _withdraw_request(self) -> None:
        what, _ = self._asked.pop()
        if what == "flush" and self._flushes:
            self._flushes.pop()
        self._is_ended = False

    async def _push(self) -> None:
        """Send the requests that were not sent; all of them on a new line."""
        async with self._sending:
            while not self._is_over and self._error is None:
                await self._session.ready()
                if self._line != self._session.lines and not self._start_line():
                    return
                if self._sent == len(self._asked):
                    return
                if await self._send(*self._asked[self._sent]):
                    self._sent += 1

    def _start_line(self) -> bool:
        """Move to another line if no audio has come yet; return whether that is possible."""
        if self._has_begun:
            self.fail(VendorError(self._vendor, "lost the connection in mid-utterance"))
            return False
        self._line, self._sent, self._codec = self._session.lines, 0, self._new_codec()
        self._has_sent = False
        self._heard_at_s = trio.current_time()
        return True

    async def _send(self, what: Asked, text: str) -> bool:
        codec = self._codec
        messages = codec.text(text) if what == "text" else getattr(codec, what)()
        for message in messages:
            if not await self._session.send_on(self._line, message):
                return False
            self._has_sent = True
        return True

    # --- for the voice --------------------------------------------------------------------------

    @property
    def is_open_at_vendor(self) -> bool:
        """Whether the context is open at the vendor on the newest line."""
        return self._has_sent and not self._is_final and self._line == self._session.lines

    @property
    def late_at_s(self) -> float:
        """When the vendor must have sent something; infinity if it owes nothing."""
        owes = (self._flushes or self._is_ended) and not self._is_over and self._error is None
        return self._heard_at_s + self._answer_s if owes else math.inf

    def give_up(self) -> None:
        """Fail the context; reopen the line if it has brought nothing to any context since."""
        error = VendorError(self._vendor, f"sent nothing for {self._answer_s:g} s")
        self.fail(error)
        if self._session.heard_at_s <= self._heard_at_s and self._line == self._session.lines:
            self._session.reopen(error)

    def read(self, message: Mapping[str, Any]) -> None:
        """Handle a message from the vendor."""
        try:
            pieces = [*self._codec.pieces(message)]
        except VendorError as error:
            self.fail(error)
            return
        self._heard_at_s = trio.current_time()
        for piece in pieces:
            self._is_final |= piece is None
            if self._error is None and not self._is_over:
                self._has_begun = True
                self._accept(piece)

    def _accept(self, piece: Piece) -> None:
        """Queue a piece, unless it was not asked for or makes no sense."""
        if piece is None:
            self._is_over = True
        elif isinstance(piece, TextSaid):
            for number in range(self._flushes.popleft() if self._flushes else 0):
                self._add(TextSaid(joined=piece.joined or number > 0))
            return
        else:
            words = in_order(piece.words, self._word_s - self._audio_s)
            if words:
                self._word_s = self._audio_s + words[-1].start_s
            self._audio_s += len(piece.pcm) / 2 / self._sample_rate_hz
            self._waiting_bytes += len(piece.pcm)
            if self._waiting_bytes > self._most_bytes:
                self._pieces.clear()
                self.fail(
                    VendorError(self._vendor, f"more than {MOST_WAITING_S:g} s of its audio wait")
                )
                return
            piece = SpeechPiece(piece.pcm, words)
        self._add(piece)

    def _add(self, piece: Piece) -> None:
        self._pieces.append(piece)
        self._news.set()

    async def restart(self) -> None:
        """Send everything again on another line, if no audio has come yet."""
        await self._push()

    def fail(self, error: VendorError) -> None:
        """Make whoever waits for audio raise this error."""
        self._error = self._error or error
        self._news.set()

    async def cancel(self) -> None:
        """Cancel the context at the vendor, unless all was said; a failed one may still run
        there."""
        all_said = self._is_ended and not self._flushes
        if self._is_over or (all_said and self._error is None):
            return
        self._is_over = True
        with suppress(VendorError):  # a lost session has ended the context too
            for message in self._codec.cancel():
                await self._session.send_on(self._line, message)
