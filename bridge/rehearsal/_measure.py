"""Finds in a recording what each line did: the cut it made, and the answer it got."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ..client import Arrival
from ._latency import find_parts
from ._observer import Metric
from ._pcm import AUDIBLE, first_audible, to_pcm
from ._recording import RATE_HZ, Recording
from ._result import Answer, Cut, Decision, Held, Said

EFFECT_S = 0.03
"""Slack after a cut is told: one frame of 20 ms and the clock's rounding."""

_CHUNK = RATE_HZ // 20
"""Length of the pieces by which late audio is recognised: 50 ms."""

_STEP = RATE_HZ // 4
"""Distance between two such pieces: 0.25 s."""

_LOUD = 10 * AUDIBLE
"""A piece must have a peak of -30 dB of full scale to be told from another."""


@dataclass(frozen=True, slots=True)
class Fence:
    """A server's word that all audio up to an utterance was cut."""

    at_s: float
    """When the caller got it, in seconds of the recording."""
    utterance: int


@dataclass(frozen=True, slots=True)
class Notes:
    """What a recording does not show."""

    fences: Sequence[Fence] = ()
    arrivals: Sequence[Arrival] = ()
    """Times are seconds of trio's clock."""
    turns: Mapping[int, int] = field(default_factory=dict)
    """The turn of each utterance."""
    texts: Mapping[int, str] = field(default_factory=dict)
    """The text of each utterance."""
    history: Sequence[Mapping[str, Any]] = ()
    metrics: Sequence[Metric] = ()
    """Times are seconds of trio's clock."""
    decisions: Sequence[Decision] = ()
    held: Sequence[Held] = ()
    generations: Sequence[tuple[float, int]] = ()
    """When a generation ended, in seconds of the recording, and its turn."""
    transcripts: Sequence[tuple[float, str]] = ()
    """When a turn of the caller's was understood, and as what."""


def find_cut(said: Said, recording: Recording, notes: Notes) -> Cut:
    """Return what an interrupting line did to the agent's speech.

    Args:
        said: The line.
        recording: The call.
        notes: What the recording does not show.
    """
    utterance = audible_at(recording, said.from_s)
    if utterance is None:
        return Cut(said)
    fence = next(
        (f for f in notes.fences if f.utterance >= utterance and f.at_s >= said.from_s), None
    )
    told_s = None if fence is None else fence.at_s + EFFECT_S
    silent_at_s = recording.last_agent_s(utterance, told_s)
    entry = _entry(notes, utterance)
    whole = recording.generated.get(utterance, array("h"))
    played = recording.of(utterance)
    heard = str(entry.get("heard", ""))
    return Cut(
        said=said,
        utterance=utterance,
        silent_at_s=silent_at_s,
        # An agent that draws breath falls silent before the caller begins.
        latency_s=None if silent_at_s is None else max(0.0, silent_at_s - said.from_s),
        is_told=fence is not None,
        played_s=len(heard_of_turn(recording, notes, utterance)) / RATE_HZ,
        dropped_s=max(0, len(whole) - len(played)) / RATE_HZ,
        late_s=0.0 if told_s is None else _late_s(recording, notes, utterance, told_s),
        arrived_late_s=0.0 if fence is None else _arrived_late_s(recording, notes, fence),
        heard=heard,
        unheard=str(entry.get("generated", ""))[len(heard) :],
    )


def find_answer(said: Said, recording: Recording, notes: Notes) -> Answer:
    """Return the first answer that began after a line did.

    Args:
        said: The line.
        recording: The call.
        notes: What the recording does not show.
    """
    begun = [recording.first_agent_s(number) for number in _utterances(recording)]
    after = [at_s for at_s in begun if at_s is not None and at_s > said.from_s]
    if not after:
        return Answer(said, None)
    first_s = min(after)
    parts = find_parts(said, first_s, recording.start_s, notes.metrics)
    return Answer(said, first_s - said.until_s, parts)


def audible_at(recording: Recording, at_s: float) -> int | None:
    """Return the utterance that was being played at a moment of the recording."""
    index = round(at_s * RATE_HZ)
    begun = [span.utterance for span in recording.spans if span.start <= index]
    # A gap inside an utterance, where the player waits for more, does not make it another.
    lasting = {span.utterance for span in recording.spans if span.stop > index}
    return begun[-1] if begun and begun[-1] in lasting else None


def heard_of_turn(recording: Recording, notes: Notes, utterance: int) -> array[int]:
    """Return all audio that was heard of the turn to which an utterance belongs."""
    turn = notes.turns.get(utterance)
    heard = array("h")
    for number in _utterances(recording):
        if number == utterance or (turn is not None and notes.turns.get(number) == turn):
            heard += recording.of(number)
    return heard


def _utterances(recording: Recording) -> list[int]:
    return list(dict.fromkeys(span.utterance for span in recording.spans))


def _entry(notes: Notes, utterance: int) -> Mapping[str, Any]:
    turn = notes.turns.get(utterance)
    entries = (e for e in notes.history if e["role"] == "agent" and e["turn"] == turn)
    return next(entries, {})


# --- audio that came too late -------------------------------------------------------------------


def _late_s(recording: Recording, notes: Notes, utterance: int, told_s: float) -> float:
    """Return how much of a cut utterance was played after it was cut, under any number."""
    after = round(told_s * RATE_HZ)
    by_number = sum(
        max(0, span.stop - max(span.start, after))
        for span in recording.spans
        if span.utterance <= utterance
    )
    return by_number / RATE_HZ + _disguised_s(recording, notes, utterance, after)


def _disguised_s(recording: Recording, notes: Notes, utterance: int, after: int) -> float:
    """Return how much of the unheard rest of an utterance was played as part of later ones.

    A voice that goes on with the old answer after the new one began hands over the very same
    samples.  Utterances that say some of the same words are left out: a voice may give the same
    samples for them with good reason.
    """
    rest = recording.generated.get(utterance, array("h"))[len(recording.of(utterance)) :]
    unheard = notes.texts.get(utterance, "")
    haystacks = [
        to_pcm(recording.agent[max(span.start, after) : span.stop])
        for span in recording.spans
        if span.utterance > utterance
        and span.stop > after
        and not _shares_words(unheard, notes.texts.get(span.utterance, ""))
    ]
    found = 0
    for start in range(first_audible(rest) or 0, len(rest) - _CHUNK, _STEP):
        piece = rest[start : start + _CHUNK]
        if max(piece) >= _LOUD and any(to_pcm(piece) in played for played in haystacks):
            found += 1
    return found * _STEP / RATE_HZ


def _shares_words(one: str, other: str) -> bool:
    """Whether two texts have two neighbouring words in common."""
    return bool(_pairs(one) & _pairs(other))


def _pairs(text: str) -> set[tuple[str, str]]:
    words = text.lower().split()
    return set(pairwise(words))


def _arrived_late_s(recording: Recording, notes: Notes, fence: Fence) -> float:
    after_s = recording.start_s + fence.at_s
    late = (a.length for a in notes.arrivals if a.utterance <= fence.utterance and a.at_s > after_s)
    return sum(late) / RATE_HZ
