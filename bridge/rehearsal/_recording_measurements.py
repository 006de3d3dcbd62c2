"""Measures in a recording what each line did: the cut it caused, and the answer it got."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ..audio.pcm import AUDIBLE, first_audible, to_pcm
from ..client import ReceivedAudio
from ._observer import Metric
from ._recording import RATE_HZ, Recording
from ._rehearsal_result import (
    Held,
    LatencyParts,
    MeasuredAnswer,
    MeasuredCut,
    RecordedLine,
    TurnDecision,
    agent_entry,
)

EFFECT_S = 0.03
"""The tolerance after a client learns of a cut: one frame of 20 ms, plus rounding of the clock."""

_CHUNK = RATE_HZ // 20
"""The length of the pieces that identify late audio: 50 ms."""

_STEP = RATE_HZ // 4
"""Distance between two such pieces: 0.25 s."""

_LOUD = 10 * AUDIBLE
"""A piece needs a peak of -30 dB of full scale to be distinguishable."""


@dataclass(frozen=True, slots=True)
class ReceivedClear:
    """A ``clear`` message: all audio up to and including an utterance was cut."""

    at_s: float
    """When the client received it, in seconds of the recording."""
    utterance: int
    """The number of that utterance."""


@dataclass(frozen=True, slots=True)
class CallNotes:
    """What happened in a call that its recording does not show.

    Times are seconds of the recording, except where a field says otherwise.
    """

    clears: Sequence[ReceivedClear] = ()
    """The cuts that the client was told of."""
    received_audio: Sequence[ReceivedAudio] = ()
    """When audio arrived at the client, in seconds of trio's clock."""
    answers: Mapping[int, int] = field(default_factory=dict)
    """The answer of each utterance."""
    texts: Mapping[int, str] = field(default_factory=dict)
    """The text of each utterance."""
    history: Sequence[Mapping[str, Any]] = ()
    """The call's history as plain data."""
    metrics: Sequence[Metric] = ()
    """The reported numbers, with times in seconds of trio's clock."""
    decisions: Sequence[TurnDecision] = ()
    """The decisions of turn taking."""
    held: Sequence[Held] = ()
    """When the agent's voice was held."""
    generations: Sequence[tuple[float, int]] = ()
    """When each generation ended, and its answer."""
    is_exact: bool = True
    """Whether what is heard is what was synthesised, sample for sample."""
    transcripts: Sequence[tuple[float, str]] = ()
    """The caller's final transcripts, each with its time."""


def find_cut(said: RecordedLine, recording: Recording, notes: CallNotes) -> MeasuredCut:
    """Measure what an interrupting line did to the agent's speech.

    Args:
        said: The line.
        recording: The recorded call.
        notes: What the recording does not show.
    """
    utterance = audible_at(recording, said.from_s)
    if utterance is None:
        return MeasuredCut(said)
    clear = next(
        (f for f in notes.clears if f.utterance >= utterance and f.at_s >= said.from_s), None
    )
    told_s = None if clear is None else clear.at_s + EFFECT_S
    silent_at_s = recording.last_agent_s(utterance, told_s)
    entry = agent_entry(notes.history, notes.answers.get(utterance))
    whole = recording.generated.get(utterance, array("h"))
    played = recording.of(utterance)
    heard = str(entry.get("heard", ""))
    return MeasuredCut(
        said=said,
        utterance=utterance,
        silent_at_s=silent_at_s,
        # In a pause of its speech, the agent falls silent before the caller begins.
        latency_s=None if silent_at_s is None else max(0.0, silent_at_s - said.from_s),
        is_reported=clear is not None,
        played_s=len(heard_of_answer(recording, notes, utterance)) / RATE_HZ,
        dropped_s=max(0, len(whole) - len(played)) / RATE_HZ,
        late_s=0.0 if told_s is None else _late_s(recording, notes, utterance, told_s),
        arrived_late_s=0.0 if clear is None else _arrived_late_s(recording, notes, clear),
        heard=heard,
        unheard=str(entry.get("generated", ""))[len(heard) :],
    )


def find_answer(said: RecordedLine, recording: Recording, notes: CallNotes) -> MeasuredAnswer:
    """Find the first answer that began after a line did, and measure its latency.

    Args:
        said: The line.
        recording: The recorded call.
        notes: What the recording does not show.
    """
    begun = [recording.first_agent_s(number) for number in _utterances(recording)]
    after = [at_s for at_s in begun if at_s is not None and at_s > said.from_s]
    if not after:
        return MeasuredAnswer(said, None)
    first_s = min(after)
    parts = find_parts(said, first_s, recording.start_s, notes.metrics)
    return MeasuredAnswer(said, first_s - said.until_s, parts)


def audible_at(recording: Recording, at_s: float) -> int | None:
    """Return the utterance that was playing at a moment of the recording; ``None`` for silence."""
    index = round(at_s * RATE_HZ)
    begun = [span.utterance for span in recording.spans if span.start <= index]
    # A gap in which the player waits for more audio is still part of the utterance.
    lasting = {span.utterance for span in recording.spans if span.stop > index}
    return begun[-1] if begun and begun[-1] in lasting else None


def heard_of_answer(recording: Recording, notes: CallNotes, utterance: int) -> array[int]:
    answer = notes.answers.get(utterance)
    heard = array("h")
    for number in _utterances(recording):
        if number == utterance or (answer is not None and notes.answers.get(number) == answer):
            heard += recording.of(number)
    return heard


def _utterances(recording: Recording) -> list[int]:
    return list(dict.fromkeys(span.utterance for span in recording.spans))


# --- audio that came too late -------------------------------------------------------------------


def _late_s(recording: Recording, notes: CallNotes, utterance: int, told_s: float) -> float:
    """Return the seconds of a cut utterance that were played after the cut, under any number."""
    after = round(told_s * RATE_HZ)
    by_number = sum(
        max(0, span.stop - max(span.start, after))
        for span in recording.spans
        if span.utterance <= utterance
    )
    return by_number / RATE_HZ + _disguised_s(recording, notes, utterance, after)


def _disguised_s(recording: Recording, notes: CallNotes, utterance: int, after: int) -> float:
    """Return the seconds of an utterance's unheard rest that were played as part of later ones.

    A voice that continues the old answer after the new one began delivers the very same samples.
    Utterances that share words with the old one do not count, because a voice may rightly deliver
    the same samples for them.
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


def _arrived_late_s(recording: Recording, notes: CallNotes, clear: ReceivedClear) -> float:
    after_s = recording.start_s + clear.at_s
    late = (
        a.length
        for a in notes.received_audio
        if a.utterance <= clear.utterance and a.at_s > after_s
    )
    return sum(late) / RATE_HZ


FIRST_AUDIO = "answer.first_audio_s"
"""The last metric reported before an answer is heard."""


def find_parts(
    said: RecordedLine, heard_at_s: float, start_s: float, metrics: Sequence[Metric]
) -> LatencyParts | None:
    """Return the parts of a latency, or ``None`` if the speech stack does not report them.

    Args:
        said: The line; its times are seconds of the recording.
        heard_at_s: The first audible sample of its answer, in seconds of the recording.
        start_s: When the recording began, in seconds of trio's clock.
        metrics: All numbers that the call reported, in order.
    """
    told: dict[str, float] = {}
    answer: dict[str, float] = {}
    audio_at_s = 0.0
    for metric in metrics:
        if said.from_s < metric.at_s - start_s <= heard_at_s:
            told[metric.name] = metric.value
            if metric.name == FIRST_AUDIO:
                # A copy, because the next clause may report its figures before this one is heard.
                # The last one counts, because a line that became two turns had one answer cut.
                answer, audio_at_s = dict(told), metric.at_s - start_s
    try:
        return _parts(answer, audio_at_s - said.until_s, heard_at_s - audio_at_s)
    except KeyError:
        return None


def _parts(told: dict[str, float], until_audio_s: float, playback_s: float) -> LatencyParts:
    transcription_s, end_of_turn_s = told["listening.recogniser_s"], told["listening.end_of_turn_s"]
    first_text_s, first_piece_s = told["answer.first_text_s"], told["speaking.first_piece_s"]
    return LatencyParts(
        silence_s=until_audio_s - told[FIRST_AUDIO] - max(transcription_s, end_of_turn_s),
        transcription_s=transcription_s,
        end_of_turn_s=end_of_turn_s,
        first_text_s=first_text_s,
        first_clause_s=told[FIRST_AUDIO] - first_text_s - first_piece_s,
        first_piece_s=first_piece_s,
        playback_s=playback_s,
    )
