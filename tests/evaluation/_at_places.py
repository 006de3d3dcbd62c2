"""Every acknowledgement at every place on the detector's windows, in virtual time.

It plays as ``bargein eval`` does: Whisper always takes 0.10 s, so no figure depends on how fast or
how busy the machine is.  In real time, all places would take six minutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import trio
from numpy.typing import NDArray

from bargein.nodes.evaluation._replay import FRAME, ReplayResult, replay
from bargein.nodes.evaluation._replay_engines import open_engines

from ._found import GAP_MS, Found, quantile
from ._places import PLACES
from ._row import MeasurementRow
from ._stage import Stage
from ._talking import acknowledgements_by_voice

Sound: TypeAlias = NDArray[np.float64]

LEAD_FRAMES = 14 * PLACES
"""The agent has then spoken for two seconds, so sound alone may interrupt it."""

TAIL_FRAMES = 150
"""Three seconds, in which the words of a sound are decided."""

SHARE = 0.95
"""The share of the gaps that the bound is for.  A hum or an "uh-huh" whose sound is not surely an
acknowledgement holds the agent until its words or its silence are known, because some sentences
begin like it."""


@dataclass(frozen=True)
class Played:
    """What a word did to the agent at a place."""

    word: str
    """The word and its voice."""
    gap_ms: float
    is_nothing: bool
    """Whether it neither cut the agent nor was answered."""


async def places(stage: Stage) -> Found:
    """The caller agrees while the agent speaks, at every place on the windows."""
    words = [
        (f"“{text}” ({who})", await stage.voices.say(who, text))
        for who, texts in acknowledgements_by_voice().items()
        for text in texts
    ]
    played = await trio.to_thread.run_sync(_play, words)
    return Found([row_of(played)])


def _play(words: Sequence[tuple[str, bytes]]) -> list[Played]:
    with open_engines() as engines:
        return [
            heard(word, replay(engines, microphone(pcm, place)))
            for word, pcm in words
            for place in range(PLACES)
        ]


def microphone(pcm: bytes, place: int) -> Sound:
    """Return what the microphone of a quiet room hears of a word that begins at a place.

    Args:
        pcm: The word, PCM16 mono 16 kHz.
        place: How many frames after the beginning of a window.
    """
    word = np.frombuffer(pcm, "<i2").astype(np.float64)
    starts = FRAME * (LEAD_FRAMES + place)
    sound = np.random.default_rng(1).integers(-4, 5, starts + len(word) + FRAME * TAIL_FRAMES)
    sound[starts : starts + len(word)] = word
    return sound.astype(np.float64)


def heard(word: str, call: ReplayResult) -> Played:
    """Return what a word did in a call."""
    held = [until_s - from_s for state, from_s, until_s in call.runs(0.0) if state == "held"]
    return Played(word, 1000 * max(held, default=0.0), not call.cuts and not call.asked)


def row_of(played: Sequence[Played]) -> MeasurementRow:
    """Return the row of all words at all places."""
    short = sum(each.gap_ms <= GAP_MS + 0.5 for each in played)
    worst = max(played, key=lambda each: each.gap_ms)
    wrong = sorted({each.word for each in played if not each.is_nothing})
    happened = (
        f"{short} of {len(played)} held the agent for at most {GAP_MS} ms, the others for up to "
        f"{worst.gap_ms:.0f} ms after {worst.word}"
        if short < len(played)
        else f"all {len(played)} held the agent for at most {GAP_MS} ms"
    )
    if wrong:
        happened += f"; taken for a turn: {', '.join(wrong)}"
    return MeasurementRow(
        "acknowledgement",
        f"each word at {PLACES} places, in virtual time: {SHARE:.0%} of the gaps",
        happened,
        figure=quantile(sorted(each.gap_ms for each in played), SHARE),
        bound=GAP_MS,
        holds=not wrong,
    )
