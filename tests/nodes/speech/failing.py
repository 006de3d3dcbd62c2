"""Ears, voices, models and a line that fail on demand, and what a caller hears.

Sound here is words: each word is a number, and its sound is that number, sample for sample.  So a
test can read off what was said, and an ear that gets the sound once more hears the same words.
"""

from __future__ import annotations

import array
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import trio

from bargein.events import UserAudio, WordTiming
from bargein.llm import ChatModelError, TextDelta
from bargein.routes import Message
from bargein.speech import (
    PerhapsOver,
    SpeechPiece,
    TextSaid,
    TurnOver,
    VoiceBegan,
    WordsHeard,
)
from bargein.vendors import VendorError

RATE_HZ = 16_000
WORD_S = 0.2
FRAME_S = 0.02
SLOW_S = 1.5
"""How long what is slow takes for each thing; it works all the same."""

_words: list[str] = []


def sound_of(word: str) -> bytes:
    """Return the audio of a word: its number as an amplitude, followed by a short silence."""
    if word not in _words:
        _words.append(word)
    samples = int(WORD_S * RATE_HZ)
    number, quiet = 2000 + _words.index(word), samples // 10
    loud = array.array("h", [number, -number]) * ((samples - quiet) // 2)
    return loud.tobytes() + bytes(2 * quiet)


def words_of(pcm: bytes) -> list[str]:
    """Return the words of a sound; half a word has a hyphen."""
    samples = np.abs(np.frombuffer(pcm, np.int16))
    begins = np.flatnonzero(np.diff(samples, prepend=0))
    counts = np.diff(begins, append=len(samples)).tolist()
    found = [(n, count) for n, count in zip(samples[begins].tolist(), counts, strict=True) if n]
    whole = int(WORD_S * RATE_HZ) * 9 // 10
    return [_words[n - 2000] + ("" if count >= whole - 2 else "-") for n, count in found]


@dataclass
class Fault:
    """The fault of a provider, and after how many words it strikes."""

    kind: str = ""
    after: int = 0
    happened: int = 0

    async def meet(self, count: int, error: Exception) -> Any:
        """Fail, if the time has come; return garbage to hand out, or None."""
        if not self.kind or count < self.after:
            return None
        self.happened += 1
        match self.kind:
            case "stall":
                await trio.sleep_forever()
            case "slow":
                await trio.sleep(SLOW_S)
            case "drop":
                raise error
            case "garbage":
                return object()
        return None


class WordVoice:
    """A voice that streams, at four times the speed of speech, and may know word times."""

    sample_rate_hz = RATE_HZ

    def __init__(self, name: str = "voice", *, times: str = "words") -> None:
        self.name = name
        self.times = times
        self.fault = Fault()
        self.said: list[str] = []

    @asynccontextmanager
    async def open_context(self, style: object) -> AsyncIterator[_WordContext]:
        yield _WordContext(self)


class _WordContext:
    def __init__(self, voice: WordVoice) -> None:
        self._voice = voice
        self._send, self._receive = trio.open_memory_channel[str | None](math.inf)
        self._count = 0

    async def send(self, text: str) -> None:
        for word in text.split():
            self._send.send_nowait(word)

    async def flush(self) -> None:
        self._send.send_nowait("")

    async def end(self) -> None:
        self._send.send_nowait(None)

    async def receive(self) -> Any:
        word = await self._receive.receive()
        if not word:
            return None if word is None else TextSaid()
        broken = VendorError(self._voice.name, "the line broke")
        garbage = await self._voice.fault.meet(self._count, broken)
        if garbage is not None:
            return garbage
        await trio.sleep(WORD_S / 4)
        self._count += 1
        self._voice.said.append(word)
        timing = (WordTiming(word, 0.0, WORD_S),) if self._voice.times == "words" else ()
        return SpeechPiece(sound_of(word), timing)


class WordEar:
    """An ear that streams; it ends the turn after half a second of silence."""

    sample_rate_hz = RATE_HZ

    def __init__(self, name: str = "ear") -> None:
        self.name = name
        self.fault = Fault()
        self.ends_fault = Fault()
        self.streams = 0

    @asynccontextmanager
    async def open_stream(self) -> AsyncIterator[_WordStream]:
        self.streams += 1
        yield _WordStream(self)


class _WordStream:
    def __init__(self, ear: WordEar) -> None:
        self._ear = ear
        self._send, self._receive = trio.open_memory_channel[Any](math.inf)
        self._pcm = b""
        self._told = 0
        self._silence_s = 0.0
        self._perhaps = False

    async def send(self, pcm: bytes) -> None:
        await trio.lowlevel.checkpoint()
        if any(pcm):
            self._pcm += pcm
            self._silence_s = 0.0
        else:
            self._silence_s += len(pcm) / 2 / RATE_HZ
            self._pcm += pcm if self._pcm and self._silence_s < WORD_S else b""
        if not self._pcm:
            return
        words = [word for word in words_of(self._pcm) if not word.endswith("-")]
        if len(words) > self._told:
            began = [] if self._told else [VoiceBegan()]
            self._told = len(words)
            for fact in (*began, WordsHeard(" ".join(words))):
                self._send.send_nowait((self._told, fact))
        elif words and self._silence_s > 0.3 and not self._perhaps:
            self._perhaps = True
            self._send.send_nowait((self._told, PerhapsOver(0.6)))
        elif words and self._silence_s > 0.5:
            self._send.send_nowait((self._told, TurnOver(" ".join(words))))
            self._pcm, self._told, self._perhaps = b"", 0, False

    async def end_turn(self) -> None:
        await trio.lowlevel.checkpoint()

    async def receive(self) -> Any:
        count, fact = await self._receive.receive()
        broken = VendorError(self._ear.name, "the line broke")
        fault = self._ear.ends_fault if isinstance(fact, TurnOver) else self._ear.fault
        garbage = await fault.meet(count, broken)
        return fact if garbage is None else garbage


class WordModel:
    """A language model that answers with one text, word by word."""

    def __init__(self, text: str, name: str = "model") -> None:
        self.text = text
        self.model = name
        self.fault = Fault()
        self.asked = 0
        self.pace_s = 0.02
        self.messages: Any = ()

    async def stream(self, messages: Any, *, tools: Any = ()) -> AsyncIterator[Any]:
        """Answer; if the answer broke off, continue after its last word."""
        self.asked += 1
        self.messages = messages
        words = self.text.split()
        if "broken off" in str(messages[-1]["content"]):
            words = words[len(messages[-2]["content"].split()) :]
        for count, word in enumerate(words):
            await trio.sleep(self.pace_s)
            garbage = await self.fault.meet(count, ChatModelError("it broke", model=self.model))
            if garbage is not None:
                yield garbage
            yield TextDelta(f"{word} ")


@dataclass
class WordLine:
    """A caller's line: what it plays is kept with its time."""

    audio: bool = True
    sample_rate_hz: int = RATE_HZ
    messages: list[Message] = field(default_factory=list)
    sounds: list[tuple[float, int, bytes]] = field(default_factory=list)
    until_s: float = 0.0

    def send(self, message: Message) -> None:
        self.messages.append(message)

    def play(self, utterance: int, pcm: bytes) -> None:
        begins_s = max(trio.current_time(), self.until_s)
        self.sounds.append((begins_s, utterance, pcm))
        self.until_s = begins_s + len(pcm) / 2 / RATE_HZ

    def clear(self, utterance: int, reason: str) -> None:
        now_s, kept = trio.current_time(), []
        self.until_s = 0.0
        for begins_s, number, pcm in self.sounds:
            if number <= utterance:
                pcm = pcm[: max(0, round((now_s - begins_s) * RATE_HZ)) * 2]
            if pcm:
                kept.append((begins_s, number, pcm))
                self.until_s = begins_s + len(pcm) / 2 / RATE_HZ
        self.sounds = kept

    @property
    def words(self) -> list[str]:
        """The words that the caller has heard, in order."""
        return words_of(b"".join(pcm for _, _, pcm in self.sounds))

    def silence_s(self, since_s: float, until_s: float) -> float:
        """Return the longest silence between two moments."""
        longest_s, sound_s = 0.0, since_s
        for begins_s, _, pcm in self.sounds:
            ends_s = begins_s + len(pcm) / 2 / RATE_HZ
            if ends_s > since_s and begins_s < until_s:
                longest_s = max(longest_s, begins_s - sound_s)
                sound_s = max(sound_s, ends_s)
        return max(longest_s, until_s - sound_s)


async def speak(call: Any, text: str) -> None:
    """Say words into the caller's microphone."""
    await stream(call, b"".join(sound_of(word) for word in text.split()))


async def stream(call: Any, pcm: bytes) -> None:
    """Send audio at the pace of speech."""
    size = int(FRAME_S * RATE_HZ) * 2
    for at in range(0, len(pcm), size):
        call.publish(UserAudio(pcm[at : at + size]))
        await trio.sleep(FRAME_S)


async def silence(call: Any) -> None:
    """Send silence for as long as the task runs."""
    while True:
        await stream(call, bytes(int(FRAME_S * RATE_HZ) * 2))
