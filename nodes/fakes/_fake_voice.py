"""A fake of a vendor's voice: a character lasts `CHAR_S`, and comes at ``FakeVoice.speed``."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import trio

from bargein.bridge.websocket import Data

from ._fake_vendor import FakeLine, FakeVendor
from ._fault import FaultKind, FaultStage

CHAR_S = 0.05
"""The length of a character in seconds."""

SPEED = 10.0
"""How much faster than real time a voice synthesises speech by default."""

SAMPLE_RATE_HZ = 24_000

VendorMessage = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceRequest:
    """A parsed request for a context."""

    context: str
    text: str = ""
    flush: bool = False
    """Whether to say all text so far."""
    end: bool = False
    """Whether no text follows."""
    cancel: bool = False
    """Whether to stop speaking."""
    close: bool = False
    """Whether to close the line at once."""


def pcm_of(text: str) -> bytes:
    """Return audio with the length of a spoken text: PCM16 mono, 24 kHz."""
    return b"\x00\x10" * round(len(text) * CHAR_S * SAMPLE_RATE_HZ)


def base64_of(text: str) -> str:
    return base64.b64encode(pcm_of(text)).decode()


class FakeVoice(FakeVendor):
    """The base of fake voices; a subclass writes the messages of its vendor."""

    faults: ClassVar[frozenset[FaultKind]] = frozenset(
        {
            *("stall", "drop", "close", "refuse", "garbage", "duplicate", "error"),
            *("reorder", "slow", "empty", "flood", "deaf", "backwards", "late"),
        }
    )

    speed: float = SPEED
    """How much faster than real time it synthesises; real vendors are about 3 times as fast."""

    cancelled: int = 0
    """How many contexts were cancelled before everything was said."""

    # --- for subclasses -------------------------------------------------------------------------

    def read(self, data: Data) -> VoiceRequest | None:
        """Parse a message; return None if it requests nothing.

        Raises:
            ValueError: The vendor does not accept the message.
        """
        raise NotImplementedError

    def hello(self) -> Sequence[VendorMessage]:
        """Return the first messages of a line."""
        return ()

    def refused(self, asked: VoiceRequest, line: FakeLine) -> Sequence[VendorMessage]:
        """Return the messages that refuse a request; none if it is accepted."""
        return ()

    def taken(self, asked: VoiceRequest) -> Sequence[VendorMessage]:
        """Return the messages that acknowledge a request at once."""
        return ()

    def began(self, context: str, number: int) -> Sequence[VendorMessage]:
        """Return the messages that precede the audio of a flush; flushes count from 1."""
        return ()

    def audio(self, context: str, word: str, at_s: float) -> Sequence[VendorMessage | bytes]:
        """Return the messages with the audio of a word.

        Args:
            context: The name of its context.
            word: The word and the space after it.
            at_s: When it begins, in seconds from the beginning of the context.
        """
        raise NotImplementedError

    def flushed(self, context: str, number: int) -> Sequence[VendorMessage]:
        """Return the messages that report that a flush is done; flushes count from 1."""
        return ()

    def done(self, context: str) -> Sequence[VendorMessage]:
        """Return the messages that report that everything has been said."""
        return ()

    def stopped(self, context: str, at_s: float) -> Sequence[VendorMessage]:
        """Return the messages that answer a cancel after `at_s` seconds of audio."""
        return ()

    most_contexts: ClassVar[int | None] = None
    """The limit on open contexts per line; ``None`` for no limit."""

    # --------------------------------------------------------------------------------------------

    async def talk(self, line: FakeLine) -> None:
        """Speak until the line is over."""
        contexts: dict[str, _Context] = {}
        for message in self.hello():
            await line.say(message)
        async with trio.open_nursery() as nursery:
            try:
                while True:
                    asked = self._read(await line.receive(), line)
                    if asked is None:
                        continue
                    refused = self.refused(asked, line)
                    for message in refused or self.taken(asked):
                        await line.say(message)
                    if not refused:
                        self._ask(asked, line, contexts, nursery)
            finally:
                nursery.cancel_scope.cancel(reason="the line is over")

    def _read(self, data: Data, line: FakeLine) -> VoiceRequest | None:
        try:
            return self.read(data)
        except (ValueError, KeyError, TypeError) as error:
            line.close(1008, str(error)[:100] or "unreadable")
            return None

    def _ask(
        self,
        asked: VoiceRequest,
        line: FakeLine,
        contexts: dict[str, _Context],
        nursery: trio.Nursery,
    ) -> None:
        context = contexts.get(asked.context)
        if asked.close:
            line.close()
            return
        if context is None:
            if asked.cancel or (asked.end and not asked.text):
                return
            if self.most_contexts is not None and len(contexts) >= self.most_contexts:
                line.close(1008, "max_active_conversations")
                return
            context = contexts[asked.context] = _Context(self, line, asked.context)
            nursery.start_soon(self._run, context, contexts)
        context.ask(asked)

    async def _run(self, context: _Context, contexts: dict[str, _Context]) -> None:
        try:
            await context.run()
        finally:
            if contexts.get(context.name) is context:
                del contexts[context.name]

    def count_cancelled(self) -> None:
        """Count a context that was cancelled."""
        self.cancelled += 1


class _Context:
    """One utterance."""

    def __init__(self, voice: FakeVoice, line: FakeLine, name: str) -> None:
        self.name = name
        self._voice = voice
        self._line = line
        self._send, self._jobs = trio.open_memory_channel[VoiceRequest](10_000)
        self._text = ""
        self._scope = trio.CancelScope()
        self._at_s = 0.0
        self._flushes = 0

    def ask(self, asked: VoiceRequest) -> None:
        if asked.cancel:
            self._voice.count_cancelled()
            if not self._line.has("late"):
                self._scope.cancel(reason="cancelled by whoever asked")
            return
        self._send.send_nowait(asked)

    async def run(self) -> None:
        with self._scope:
            async for asked in self._jobs:
                self._text += asked.text
                if asked.flush or asked.end:
                    await self._say(asked)
                if asked.end:
                    return
        if self._scope.cancelled_caught:
            for message in self._voice.stopped(self.name, self._at_s):
                await self._line.say(message)

    async def _say(self, asked: VoiceRequest) -> None:
        text, self._text = self._text, ""
        began = self._voice.began(self.name, self._flushes + 1)
        await self._send_all(began, "middle" if self._at_s else "first")
        for word in [] if self._line.has("empty") else text.split():
            await trio.sleep(len(word) * CHAR_S / self._voice.speed)
            at: FaultStage = "middle" if self._at_s else "first"
            await self._send_all(self._voice.audio(self.name, word + " ", self._at_s), at)
            self._at_s += (len(word) + 1) * CHAR_S
        if asked.flush:
            self._flushes += 1
            await self._send_all(
                self._voice.flushed(self.name, self._flushes), self._end_of_flush()
            )
        if asked.end:
            await self._send_all(self._voice.done(self.name), "last")

    def _end_of_flush(self) -> FaultStage:
        """Return "last" if nothing waits to be said and no message reports the end of all text."""
        waits = self._jobs.statistics().current_buffer_used
        return "middle" if waits or self._voice.done(self.name) else "last"

    async def _send_all(self, messages: Sequence[VendorMessage | bytes], at: FaultStage) -> None:
        for message in messages:
            await self._voice.give(self._line, message, at)
