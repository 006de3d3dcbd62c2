"""A fake of a vendor's ear, which hears the words of its script in any sound.

A turn begins with the first audio that is not digital silence.  Each `WORD_S` of sound is one more
word of the turn.  `PAUSE_S` of silence, or a request, ends the turn with all of its words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from bargein.bridge.websocket import Data

from ._fake_vendor import FakeLine, FakeVendor
from ._fault import Fault, FaultKind, FaultStage

WORD_S = 0.2
"""The length of a word in seconds."""

PERHAPS_S = 0.3
"""Seconds of silence after which a turn may be over."""

PAUSE_S = 0.8
"""Seconds of silence after which a turn is over."""

BYTES_PER_S = 32_000

LATE: frozenset[FaultKind] = frozenset({"late"})
"""A fault only for ears with numbered messages: without numbers, late messages look new."""

VendorMessage = Mapping[str, Any]

Asked = Literal["end", "close"] | None
"""What a message asks for."""


@dataclass(slots=True)
class FakeTurn:
    """A turn of the caller, as far as it was heard."""

    number: int
    """Its number on the line, from 0."""
    words: list[str]
    """All words of the turn."""
    heard: int = 0
    """How many words were heard."""
    began_s: float = 0.0
    """When it began, in seconds of the line's audio."""
    now_s: float = 0.0
    """How much audio the line has received, in seconds."""
    is_forced: bool = False
    """Whether its end was requested."""
    settled: int = 0
    """How many words the vendor has reported for the last time."""

    @property
    def text(self) -> str:
        """The words heard so far."""
        return " ".join(self.words[: self.heard])

    def settle(self, count: int) -> list[tuple[str, float, float]]:
        """Return the times of the words that settle now, for a vendor that reports each once.

        Args:
            count: How many words of the turn are settled then.
        """
        new = self.times()[self.settled : count]
        self.settled += len(new)
        return new

    def times(self) -> list[tuple[str, float, float]]:
        """Return the words heard so far, each with its start and end in seconds."""
        return [
            (word, self.began_s + n * WORD_S, self.began_s + (n + 0.9) * WORD_S)
            for n, word in enumerate(self.words[: self.heard])
        ]


class FakeEar(FakeVendor):
    """The base of fake ears; a subclass writes the messages of its vendor."""

    faults: ClassVar[frozenset[FaultKind]] = frozenset(
        {
            *("stall", "drop", "close", "refuse", "garbage", "duplicate"),
            *("reorder", "slow", "empty", "flood", "deaf", "backwards", "error"),
        }
    )

    bytes_per_s: ClassVar[int] = BYTES_PER_S
    """The bytes of a second of its audio."""

    asks: ClassVar[Mapping[str, Asked]] = {}
    """What its messages that are no audio ask for, by their ``type``."""

    def __init__(self, *turns: str, fault: Fault | None = None) -> None:
        """Set the script.

        Args:
            turns: What the caller says, turn by turn; the last turn repeats.
            fault: The fault to play; ``None`` for none.

        Raises:
            ValueError: This fake cannot play that fault.
        """
        super().__init__(fault)
        self._turns = turns or ("a large latte please",)
        self._done = 0

    # --- for subclasses -------------------------------------------------------------------------

    def read(self, data: Data) -> bytes | Asked:
        """Return the audio of a message, or what it asks for; ``None`` if it asks for nothing.

        By default, bytes are audio, and `asks` has the rest.

        Raises:
            ValueError: The vendor does not accept the message.
        """
        if isinstance(data, bytes):
            return data
        kind = self.message(data)["type"]
        if kind not in self.asks:
            raise ValueError(f"unknown message {kind}")
        return self.asks[kind]

    def is_sound(self, pcm: bytes) -> bool:
        """Return whether a message's audio is more than silence."""
        return bool(pcm.strip(b"\0"))

    def answers(self, data: Data) -> Sequence[VendorMessage]:
        """Return the immediate answers to a message that asks for nothing."""
        return ()

    def hello(self) -> Sequence[VendorMessage]:
        """Return the first messages of a connection."""
        return ()

    def began(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        """Return the messages that report the start of a voice."""
        return ()

    def so_far(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        """Return the messages that report the words so far."""
        raise NotImplementedError

    def perhaps(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        """Return the messages that report that the turn may be over."""
        return ()

    def resumed(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        """Return the messages that report that the turn continues."""
        return ()

    def before_end(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        """Return the messages that precede the end of a turn."""
        return ()

    def over(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        """Return the messages that report the end of the turn."""
        raise NotImplementedError

    def goodbye(self, audio_s: float) -> Sequence[VendorMessage]:
        """Return the last messages of a connection that was asked to end."""
        return ()

    # --------------------------------------------------------------------------------------------

    async def talk(self, line: FakeLine) -> None:
        """Hear until the line is over."""
        for message in self.hello():
            await line.say(message)
        hearing = _HeardLine(self, line)
        while True:
            data = await line.receive()
            try:
                asked = self.read(data)
            except ValueError as error:
                line.close(1008, str(error)[:100])
                return
            if isinstance(asked, bytes):
                await hearing.hear(asked)
            elif asked == "end":
                await hearing.end(is_forced=True)
            elif asked == "close":
                await hearing.end(is_forced=True)
                for message in self.goodbye(hearing.audio_s):
                    await line.say(message)
                line.close()
                return
            else:
                for message in self.answers(data):
                    await line.say(message)

    def next_words(self, line: FakeLine) -> list[str]:
        """Return the words of the turn that begins."""
        if line.has("empty"):
            return []
        return self._turns[min(self._done, len(self._turns) - 1)].split()

    def finish(self) -> None:
        """Move to the next turn of the script."""
        self._done += 1


class _HeardLine:
    """The audio of one line."""

    def __init__(self, ear: FakeEar, line: FakeLine) -> None:
        self._ear = ear
        self._line = line
        self._turn: FakeTurn | None = None
        self._turns = 0
        self._sound_s = self._silence_s = 0.0
        self._is_perhaps_over = self._has_given = False
        self._newest: Sequence[VendorMessage] = ()
        self.audio_s = 0.0

    async def hear(self, pcm: bytes) -> None:
        seconds = len(pcm) / self._ear.bytes_per_s
        self.audio_s += seconds
        if self._ear.is_sound(pcm):
            await self._sound(seconds)
        elif self._turn is not None:
            await self._silence(seconds)

    async def _sound(self, seconds: float) -> None:
        turn = self._turn
        if turn is None:
            words = self._ear.next_words(self._line)
            turn = self._turn = FakeTurn(self._turns, words, began_s=self.audio_s - seconds)
            self._turns += 1
            self._sound_s, self._has_given = 0.0, False
            await self._send_all(self._ear.began(turn), "first")
        turn.now_s = self.audio_s
        self._silence_s = 0.0
        if self._is_perhaps_over:
            self._is_perhaps_over = False
            await self._send_all(self._ear.resumed(turn), "middle")
        self._sound_s += seconds
        heard = min(len(turn.words), 1 + int(self._sound_s / WORD_S))
        if heard > turn.heard:
            turn.heard = heard
            self._newest = self._ear.so_far(turn)
            await self._send_all(self._newest, "middle")

    async def _silence(self, seconds: float) -> None:
        turn = self._turn
        assert turn is not None
        turn.now_s = self.audio_s
        self._silence_s += seconds
        if self._silence_s >= PAUSE_S:
            await self.end(is_forced=False)
        elif self._silence_s >= PERHAPS_S and not self._is_perhaps_over:
            self._is_perhaps_over = True
            await self._send_all(self._ear.perhaps(turn), "middle")

    async def end(self, *, is_forced: bool) -> None:
        turn = self._turn
        if turn is None:
            return
        turn.heard, turn.is_forced = len(turn.words), is_forced
        messages = self._ear.before_end(turn)
        self._newest = messages or self._newest
        await self._send_all(messages, "middle")
        await self._send_all(self._ear.over(turn), "last")
        self._turn, self._is_perhaps_over = None, False
        if not self._line.is_silent:
            self._ear.finish()
        if self._line.has("late"):
            await self._send_all(self._newest, "middle")

    async def _send_all(self, messages: Sequence[VendorMessage], at: FaultStage) -> None:
        for message in messages:
            if not self._has_given and at == "middle":
                at = "first"  # the vendor does not report the start of a voice
            self._has_given = True
            await self._ear.give(self._line, message, at)
