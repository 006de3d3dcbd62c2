"""The stage of all cases: one server whose models are loaded once, and one call after another."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import structlog
import trio

from bargein import App, Call
from bargein.client import NetworkCaller
from bargein.rehearsal import (
    CallerActivity,
    CallNotes,
    Observer,
    Rehearsal,
    Room,
    ScriptLine,
    make_call,
)
from bargein.server import open_server
from bargein.speech import LocalSpeech, WhisperTiny
from bargein.weights import ProgressPrinter, fetch_models

from ._agents import STORY
from ._places import Places
from ._recogniser import Timed
from ._row import MeasurementRow
from ._voices import Voices, open_voices

Answer: TypeAlias = Callable[[Call], Awaitable[object]]

HINT = "A large latte, a cappuccino, a blueberry muffin, an espresso, a croissant."


@dataclass(frozen=True)
class Take:
    """One call of a case, as it was recorded."""

    name: str
    """Of its picture: letters, digits and dashes."""
    result: Rehearsal
    notes: CallNotes
    title: str
    """The title of its picture."""
    rows: list[MeasurementRow] = field(default_factory=list)
    """Its rows, which the picture shows."""
    asked: Sequence[tuple[float, float]] = ()
    """When the recogniser was asked, in seconds of trio's clock, and how long it took."""

    def recogniser_s(self, from_s: float, until_s: float) -> float:
        """Return the longest time that the recogniser took for what it was asked in a stretch."""
        start_s = self.result.recording.start_s
        took_s = [took_s for at_s, took_s in self.asked if from_s <= at_s - start_s < until_s]
        return max(took_s, default=0.0)


class Stage:
    """Plays calls, one at a time.

    Attributes:
        voices: The callers' voices.
    """

    def __init__(
        self,
        voices: Voices,
        url: str,
        ears: Timed,
        plays: list[Answer],
        tell: Callable[[str], None],
    ) -> None:
        """Use an open server; see ``open_stage``."""
        self.voices = voices
        self._url = url
        self._ears = ears
        self._plays = plays
        self._tell = tell

    async def line(self, who: str, text: str, when: object, **options: object) -> ScriptLine:
        """Return a line with its sound, spoken by somebody."""
        sound = await self.voices.say(who, text)
        return ScriptLine(text, when, sound=sound, **options)  # type: ignore[arg-type]  # as ScriptLine has them

    async def call(
        self,
        name: str,
        answer: Answer,
        script: Sequence[ScriptLine],
        *,
        room: Callable[[NetworkCaller], Room] | None = None,
        activity: CallerActivity | None = None,
        answer_s: float = 8.0,
        title: str = "",
    ) -> Take:
        """Play a call and return its recording and result.

        The first line begins with a window of the voice detector, each other one a place further.

        Args:
            name: The name of its picture.
            answer: The agent that answers.
            script: The caller's lines, each with its audio.
            room: What else the caller's microphone hears.
            activity: What the caller does besides speaking.
            answer_s: The longest time that the call lasts after its last line, in seconds.
            title: The title of its picture; by default made from the name.
        """
        self._tell(name)
        self._ears.begin()
        observer, places = Observer(), Places()
        self._plays[:] = [observer.watching(answer)]
        lines = [
            (replace(line, when=places.cue(line.when, number)), line.sound or b"")
            for number, line in enumerate(script)
        ]
        result, notes = await make_call(
            self._url,
            lines,
            observer=observer,
            listener=places,
            answer_s=answer_s,
            room=room,
            activity=activity,
        )
        title = title or name.replace("-", ": ", 1).capitalize()
        return Take(name, result, notes, title, asked=self._ears.asked)


@asynccontextmanager
async def open_stage(tell: Callable[[str], None] = print) -> AsyncIterator[Stage]:
    """Load everything once and serve on a free port of loopback.

    Args:
        tell: Called with the name of each call when it begins.
    """
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    plays: list[Answer] = []

    async def answer(call: Call) -> None:
        await plays[0](call)

    await fetch_models(["whisper-tiny.en"], ProgressPrinter(sys.stderr))
    ears = Timed(WhisperTiny(hint=HINT))
    async with open_voices() as (voices, voice):
        await voice.learn(STORY)
        app = App(answer, speech=LocalSpeech(voice=voice, ear=ears), name="the evaluation")
        async with open_server(app, port=0) as server:
            yield Stage(voices, server.url, ears, plays, tell)
            await trio.lowlevel.checkpoint()
