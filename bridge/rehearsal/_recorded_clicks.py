"""Finds audible faults in a recording: clipped samples, and clicks."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from itertools import pairwise

from ..audio.fades import FADE_S
from ._recording import RATE_HZ, Recording

FULL_SCALE = 32_767
"""A sample that reaches this counts as clipped, because audio is produced with headroom (EBU R 128
asks for 1 dB)."""


@dataclass(frozen=True, slots=True)
class SpeechEdge:
    """A place where the agent's speech is held, cut or resumed."""

    at_s: float
    """When it is, in seconds of the recording."""
    step: float
    """The largest change from one sample to the next there; 1 is full scale."""


def clipped(recording: Recording) -> int:
    """Return how many samples of both sides are clipped."""
    caller = recording.caller if recording.sent is None else recording.sent
    tracks = (caller, recording.sounded)
    return sum(abs(value) >= FULL_SCALE for track in tracks for value in track)


def edges_of(recording: Recording) -> list[SpeechEdge]:
    """Return every edge of the agent's speech except the beginnings of utterances, in order.

    Where the speech ends, the steps of the fade after it count.  Where it resumes, only the first
    step counts, because the later ones belong to the speech itself.
    """
    edges, track = [], recording.sounded
    fade = round(FADE_S * RATE_HZ)
    ends = [len(track), *(span.start for span in reversed(recording.spans))]
    for span, following in zip(reversed(recording.spans), ends, strict=False):
        if following > span.stop:
            stop = min(following, span.stop + fade + 1)
            edges.append(SpeechEdge(span.stop / RATE_HZ, _largest_step(track, span.stop, stop)))
    for one, other in pairwise(recording.spans):
        if one.utterance == other.utterance and other.start > one.stop:
            step = _largest_step(track, other.start, other.start + 1)
            edges.append(SpeechEdge(other.start / RATE_HZ, step))
    return sorted(edges, key=lambda edge: edge.at_s)


def _largest_step(track: array[int], start: int, stop: int) -> float:
    """Return the largest step into the samples from start to before stop."""
    steps = (abs(track[at] - track[at - 1]) for at in range(max(start, 1), min(stop, len(track))))
    return max(steps, default=0) / 32_768
