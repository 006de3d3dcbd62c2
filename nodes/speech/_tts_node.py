"""Speaks for the agents of one call: text in, audio out, clause by clause.

The first clause is synthesised while the rest is still thought.  The work on a clause ends in the
step in which the answer that it belongs to is cut.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog
import trio

from bargein.bridge.events import (
    AgentAudio,
    AgentAudioComplete,
    AgentResponse,
    AgentTextComplete,
    LogMetric,
    UserStoppedSpeaking,
)
from bargein.routes.containment import closing

from ._clauses import ClauseSplitter
from ._errors import SpeechEngineError
from ._protocols import SpeechPiece, TextToSpeech
from ._resample import resample

if TYPE_CHECKING:
    from bargein.bridge import Bridge, Message

log = structlog.get_logger()

SILENT_S = 10.0
"""How long a voice may take to its first piece, and from one to the next, until its text is given
up: as long as the playout waits for the rest of an utterance.  Workers of ours are replaced
before."""

CLAUSES_WAITING = 4096
"""How many clauses may wait to be said; an answer of that length is half a day of speech."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A piece of an utterance that can be said on its own."""

    utterance: int
    text: str
    last: bool = False
    """Whether nothing follows it; such a clause has no text."""


class Mouth:
    """Speaks in one call: text becomes clauses, and each clause audio, ahead of what is heard.

    ``LocalSpeech`` gives each call one.  Use it in a speech stack of your own, such as one that
    speaks and does not hear.
    """

    def __init__(self, bridge: Bridge, voice: TextToSpeech) -> None:
        """Declare the routes of speaking.

        Args:
            bridge: Where; no agent's.
            voice: The engine, shared by all calls.
        """
        self._bridge = bridge
        self._voice = voice
        self._splitters: dict[int, ClauseSplitter] = {}
        self._user_stopped_s: float | None = None
        self._timed: set[str] = set()
        bridge.on(UserStoppedSpeaking).map(self._note_stop)
        bridge.on(AgentResponse, where=bridge.is_audible).map(self._take)
        bridge.on(AgentTextComplete).map(self._finish)
        bridge.on(Clause, linked=True, limit=CLAUSES_WAITING).stream(self._say).broadcast()

    def _note_stop(self, message: Message) -> None:
        self._user_stopped_s = message.at_s
        self._timed.clear()

    def _take(self, message: Message) -> None:
        number = self._bridge.utterance_of(message)
        if number is None:
            return
        self._time("answer.first_text_s")
        if number not in self._splitters:
            self._forget_cut()
            self._splitters[number] = ClauseSplitter()
        splitter = self._splitters[number]
        for text in splitter.feed(message.event.content):
            self._ask(Clause(number, text), message)

    def _forget_cut(self) -> None:
        """Drop the rests of utterances that were cut: no end of their text is told."""
        played = self._bridge.played_ms
        self._splitters = {n: s for n, s in self._splitters.items() if played(n) is not None}

    def _finish(self, message: Message) -> None:
        number = message.event.utterance
        splitter = self._splitters.pop(number, None)
        rest = splitter.flush() if splitter is not None else []
        for text in rest:
            self._ask(Clause(number, text), message)
        self._ask(Clause(number, "", last=True), message)

    def _ask(self, clause: Clause, message: Message) -> None:
        """Put a clause in line, as output of the run whose text it is."""
        self._bridge.publish_for(clause, message)

    async def _say(self, message: Message) -> AsyncIterator[Any]:
        clause: Clause = message.event
        if self._bridge.played_ms(clause.utterance) is None:
            return  # cut while the clause waited, as one may be that no run has said
        if clause.last:
            yield AgentAudioComplete(utterance=clause.utterance)
            return
        if not clause.text.strip():
            yield self._audio(b"", clause.text, (), clause.utterance, last=True)
            return
        began_s = trio.current_time()
        async with aclosing(self._synthesize(clause)) as pieces:
            async for audio in pieces:
                if audio.pcm:
                    self._tell("speaking.first_piece_s", trio.current_time() - began_s)
                    self._time("answer.first_audio_s")
                yield audio

    async def _synthesize(self, clause: Clause) -> AsyncGenerator[AgentAudio, None]:
        # One piece is kept back, so that the last one can be marked as such.
        text, kept = clause.text, None
        async with aclosing(self._in_time(clause.text.strip())) as pieces:
            async for piece in pieces:
                if kept is not None:
                    yield self._audio(kept.pcm, text, kept.words, clause.utterance, last=False)
                    text = ""
                kept = piece
        if kept is not None:
            yield self._audio(kept.pcm, text, kept.words, clause.utterance, last=True)

    async def _in_time(self, text: str) -> AsyncGenerator[SpeechPiece, None]:
        """Yield what the voice says, unless it falls silent for too long."""
        with trio.CancelScope() as patience:  # one scope, opened before the voice opens any
            async with closing(self._voice.synthesize(text)) as pieces:
                patience.deadline = trio.current_time() + SILENT_S
                async for piece in pieces:
                    patience.deadline = math.inf  # a call that is paused takes no pieces
                    yield piece
                    patience.deadline = trio.current_time() + SILENT_S
                patience.deadline = math.inf
        if patience.cancelled_caught:
            raise SpeechEngineError(f"the voice was silent for {SILENT_S:g} s in mid-text")

    def _audio(
        self, pcm: bytes, text: str, words: Any, utterance: int, *, last: bool
    ) -> AgentAudio:
        rate_hz = self._bridge.output_rate_hz
        sound = resample(pcm, self._voice.sample_rate_hz, rate_hz) if pcm else b""
        return AgentAudio(sound, rate_hz, text, tuple(words), last=last, utterance=utterance)

    def _time(self, name: str) -> None:
        """Tell once an answer how long the caller has waited since the end of their turn."""
        if self._user_stopped_s is not None and name not in self._timed:
            self._timed.add(name)
            self._tell(name, trio.current_time() - self._user_stopped_s)

    def _tell(self, name: str, value: float) -> None:
        metric = LogMetric(name=name, value=round(value, 4), unit="s")
        self._bridge.publish_detached(metric)
