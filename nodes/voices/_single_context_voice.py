"""Voices whose audio names no utterance: each utterance has a socket of its own.

Rule 1. One socket says one utterance at a time; one said to its end leaves the socket to the next.
Rule 2. An interruption sends the vendor's message that stops the audio and closes the socket, so
late audio never reaches another utterance. A spare socket is open by then for the next utterance.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Literal

import trio

from bargein.nodes.speech import SpeechNotOpenError, VoiceStyle
from bargein.nodes.vendors import SessionLimits, VendorAddress
from bargein.routes.service_nursery import open_service_nursery

from ._flush_limit import FlushLimit
from ._multi_context_voice import MOST_WAITING_S
from ._single_context_socket import UtteranceSocket
from ._single_context_speech import SocketVoiceContext, SpeakCodec

CLOSE_S = 1.0
"""How long sending a cancel may take, in seconds; it only has to be queued."""

SPARES = 1
"""How many idle sockets are kept open for the next utterance."""


class SocketVoice:
    """A `StreamingTTS` with a socket for each utterance; open it before use."""

    times: Literal["words", "none"] = "none"

    def __init__(
        self,
        address_of: Callable[[VoiceStyle], VendorAddress],
        codec: Callable[[VoiceStyle], SpeakCodec],
        *,
        sample_rate_hz: int,
        limits: SessionLimits | None = None,
        dial: Callable[[], Awaitable[trio.abc.Stream]] | None = None,
    ) -> None:
        """Configure the voice; nothing connects yet.

        Args:
            address_of: Returns the address and key for a style.
            codec: Makes the codec of an utterance.
            sample_rate_hz: Sample rate of the audio.
            limits: The limits of a session; ``None`` for the defaults.
            dial: Opens the stream of a connection; ``None`` connects to the address.
        """
        self._address_of = address_of
        self._codec = codec
        self._sample_rate_hz = sample_rate_hz
        self._limits = limits or SessionLimits()
        self._dial = dial
        self._nursery: trio.Nursery | None = None
        self._idle: list[UtteranceSocket] = []

    @property
    def sample_rate_hz(self) -> int:
        """Sample rate of the audio."""
        return self._sample_rate_hz

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep the voice open while the block runs; entering does not wait for a line."""
        async with open_service_nursery("the voice is closed") as self._nursery:
            self._add_spare(VoiceStyle())
            try:
                yield
            finally:
                self._nursery = None
                self._idle.clear()

    def _new_socket(self, style: VoiceStyle) -> UtteranceSocket:
        assert self._nursery is not None  # the voice is open
        limit = FlushLimit(self._codec(style).most_flushes_a_minute)
        socket = UtteranceSocket(self._address_of(style), self._limits, limit, self._dial)
        self._nursery.start_soon(socket.run)
        return socket

    def _add_spare(self, style: VoiceStyle) -> None:
        """Open a spare socket for the next utterance, while the voice is open."""
        self._idle = [socket for socket in self._idle if not socket.is_lost]
        if self._nursery is not None and len(self._idle) < SPARES:
            self._idle.append(self._new_socket(style))

    def _socket_for(self, style: VoiceStyle) -> UtteranceSocket:
        url = self._address_of(style).url
        for socket in self._idle:
            if socket.url == url and not socket.is_lost:
                self._idle.remove(socket)
                return socket
        return self._new_socket(style)

    @asynccontextmanager
    async def open_context(self, style: VoiceStyle) -> AsyncIterator[SocketVoiceContext]:
        """Say one utterance while the block runs; see `StreamingTTS.open_context`.

        Raises:
            SpeechNotOpenError: The voice is not open.
        """
        if self._nursery is None:
            raise SpeechNotOpenError(type(self).__name__)
        socket = self._socket_for(style)
        self._add_spare(style)
        most_bytes = round(MOST_WAITING_S * 2 * self._sample_rate_hz)
        answer_s = self._limits.answer_s
        context = SocketVoiceContext(socket, self._codec(style), most_bytes, answer_s)
        socket.follow(context)
        try:
            yield context
        finally:
            socket.follow(None)
            if context.is_all_said and len(self._idle) <= SPARES and socket.is_of_use:
                self._idle.append(socket)
            else:
                with trio.move_on_after(CLOSE_S, shield=True):
                    await context.cancel()
                socket.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self._address_of(VoiceStyle()).url.partition('?')[0]}>"
