"""Judges calls: makes rows from what was found in them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bargein.rehearsal import (
    RATE_HZ,
    IgnoredSound,
    LatencyParts,
    MeasuredAnswer,
    MeasuredCut,
    TurnDecision,
    first_audible,
    gaps_of,
    held_in,
    last_audible,
    samples,
)

from ._recogniser import BUSY_S
from ._row import MeasurementRow, decided
from ._stage import Take

GAP_MS = 300
"""The longest gap that an acknowledgement may cause."""

STOPS_S = 0.15
"""How soon after its last audible sample a sound has stopped, and its words are asked for."""

DEAD_AIR_MS = 800
"""The longest silence that a cough may cause."""

SILENT_MS = 300
"""The longest time from the caller's first sound to the last sound of an interrupted agent."""


@dataclass
class Found:
    """The calls and rows of a case."""

    rows: list[MeasurementRow] = field(default_factory=list)
    takes: list[Take] = field(default_factory=list)

    def add(self, take: Take, *rows: MeasurementRow) -> None:
        """Add a call and its rows, which hold its verdict."""
        self.takes.append(take)
        self.rows += rows
        take.rows.extend(rows)


def problems(take: Take) -> str:
    """Return what went wrong in a call, as text; empty if nothing did."""
    return "; ".join(take.result.problems)


# --- sounds that should not stop the agent -------------------------------------------------------


def leaves_speaking(ignored: IgnoredSound) -> bool:
    """Whether a sound caused nothing but a gap."""
    silent = ignored.utterance is None or ignored.is_cut
    return not silent and not ignored.lost_s and not ignored.turns and not ignored.model_calls


def ignored_sound_row(
    case: str, take: Take, ignored: IgnoredSound, *, dead_air: bool = False
) -> MeasurementRow:
    """Return the row of one sound.

    Args:
        case: The case.
        take: Its call.
        ignored: What the sound did.
        dead_air: Whether to judge the silence that the caller heard, by the bound of a cough;
            otherwise the gap is judged, by the bound of an acknowledgement, unless the recogniser
            was late for its words.
    """
    figure_s = ignored.dead_air_s if dead_air else ignored.gap_s
    is_over = ignored.utterance is None or ignored.is_cut
    late_s = 0.0 if dead_air else _late_s(take, ignored)
    late = f"; not judged: the recogniser took {late_s:.2f} s" if late_s else ""
    return MeasurementRow(
        case,
        ignored.said.line.shown,
        _became_of(ignored) + late,
        figure=None if is_over else 1000 * figure_s,
        bound=DEAD_AIR_MS if dead_air else None if late_s else GAP_MS,
        decided=decided(ignored.decisions),
        holds=leaves_speaking(ignored),
        picture=take.name,
    )


def _late_s(take: Take, ignored: IgnoredSound) -> float:
    """Return how long the recogniser took for the words of a sound, if a busy machine may have made
    its gap too long; else 0."""
    took_s = take.recogniser_s(ignored.said.from_s, ignored.said.until_s + STOPS_S)
    return took_s if took_s > BUSY_S and 1000 * ignored.gap_s > GAP_MS else 0.0


def _became_of(ignored: IgnoredSound) -> str:
    made = f"turns {ignored.turns}, model calls {ignored.model_calls}"
    if ignored.utterance is None:
        return f"the agent was silent when it began; {made}"
    if ignored.is_cut:
        return f"the agent was cut; {made}"
    lost = f", {1000 * ignored.lost_s:.0f} ms lost" if ignored.lost_s else ", nothing lost"
    if ignored.dry_s:
        lost += f"; {1000 * ignored.dry_s:.0f} ms without anything to play"
    return f"the agent went on{lost}" + ("" if leaves_speaking(ignored) else f"; {made}")


def ignored_sound_rows(case: str, what: str, take: Take) -> list[MeasurementRow]:
    """Return a row for all sounds of a call, and another one for each that broke a bound.

    A sound whose gap a busy machine made too long has one of its own, too, without a bound.
    """
    rows = [ignored_sound_row(case, take, ignored) for ignored in take.result.ignored_sounds]
    late = [row for row in rows if not row.judged]
    good = [row for row in rows if row.passed and row not in late]
    bad = [row for row in rows if not row.passed]
    planned = len(rows) + (1 if problems(take) else 0)
    worst = max(good, key=lambda row: row.figure or 0, default=None)
    whole = MeasurementRow(
        case,
        what,
        f"{len(good)} of {planned} left the agent speaking, nothing lost, no model call"
        + (f"; the longest gap after {worst.what}" if worst else "")
        + (f"; {problems(take)}" if problems(take) else ""),
        figure=worst.figure if worst else None,
        bound=GAP_MS if good or not late else None,
        decided=worst.decided if worst else "",
        holds=not bad and not problems(take),
        picture=take.name,
    )
    return [whole, *bad, *late]


# --- interruptions --------------------------------------------------------------------------------


def cut_row(case: str, take: Take, cut: MeasuredCut, word: str) -> MeasurementRow:
    """Return the row of an interruption, in whose transcript one of its words must occur.

    Its figure is the time from the caller's first sound to the agent's silence: the agent is held
    before it is known what the caller wants, and may go on for a moment before it is interrupted.
    """
    heard = [text for at_s, text in take.result.transcripts if at_s > cut.said.from_s]
    understood = any(word in text.lower() for text in heard)
    if cut.latency_s is None:
        happened = "the agent was silent when it began"
    else:
        happened = "cut" if cut.is_reported else "not cut"
        happened += f", understood “{heard[0].strip()}”" if heard else ", nothing understood"
    silent_s = _silent_after_s(take, cut)
    if silent_s is not None and cut.latency_s is not None and cut.latency_s > silent_s + 0.05:
        happened += f"; held, and went on until {1000 * cut.latency_s:.0f} ms"
    late = cut.late_s or cut.arrived_late_s
    return MeasurementRow(
        case,
        cut.said.line.shown,
        happened + (f"; {problems(take)}" if problems(take) else ""),
        figure=None if silent_s is None else 1000 * silent_s,
        bound=SILENT_MS,
        decided=decided(about(take, cut.said.from_s, cut.said.until_s + 1.5)),
        holds=cut.is_reported and understood and not late and not problems(take),
        picture=take.name,
    )


def _silent_after_s(take: Take, cut: MeasuredCut) -> float | None:
    """Return the time from the caller's first sound to the first silence that it caused."""
    if cut.latency_s is None or cut.utterance is None:
        return None
    recording, from_s = take.result.recording, cut.said.from_s
    for gap in gaps_of(recording, cut.utterance, from_s):
        if held_in(gap, take.notes.held):
            last = last_audible(recording.agent, round(from_s * RATE_HZ), gap.start)
            return min(cut.latency_s, 0.0 if last is None else last / RATE_HZ - from_s)
    return cut.latency_s


# --- background sounds ----------------------------------------------------------------------------


def stretch_row(
    case: str, what: str, take: Take, from_s: float, until_s: float, bound_ms: float | None
) -> MeasurementRow:
    """Return the row of a stretch of a call in which only the agent speaks.

    Its figure is how long the agent was held in all.
    """
    recording = take.result.recording
    numbers = {span.utterance for span in recording.spans}
    stood = [gap for number in numbers for gap in gaps_of(recording, number, from_s, until_s)]
    gaps = [gap for gap in stood if held_in(gap, take.notes.held)]
    cuts = sum(from_s <= clear.at_s < until_s for clear in take.notes.clears)
    calls = sum(from_s <= at_s < until_s for at_s, _ in take.notes.generations)
    lost = "cut" if cuts else "held" if gaps else "went on"
    happened = f"{lost} {cuts or len(gaps)} times" if cuts or gaps else "the agent went on"
    if calls and cuts:
        happened += f", model calls {calls}"
    return MeasurementRow(
        case,
        what,
        happened,
        figure=1000 * sum(held_in(gap, take.notes.held) for gap in gaps),
        bound=bound_ms,
        decided=decided(about(take, from_s, until_s)),
        holds=bound_ms is None or not cuts,
        picture=take.name,
    )


def about(take: Take, from_s: float, until_s: float) -> list[TurnDecision]:
    """Return the decisions about the agent's speech in a stretch of a call."""
    return [
        each
        for each in take.result.decisions
        if each.about in ("barge_in", "start")
        and not each.is_open
        and from_s <= each.at_s < until_s
    ]


# --- hesitations ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pause:
    """A pause of a caller who goes on after it."""

    length_s: float
    cut_in: bool
    """Whether the agent was heard in it or right after it."""
    line: str


def pauses_of(
    take: Take, plans: Sequence[tuple[float, Sequence[float]]], slack_s: float = 0.3
) -> list[Pause]:
    """Return what the agent did in each pause of each line that was said.

    Args:
        take: The call.
        plans: For each line, the length of its pauses, and where in its audio they begin.
        slack_s: How long after a pause the agent still counts as cutting in.
    """
    recording, found = take.result.recording, []
    for said, (length_s, begins) in zip(take.result.said, plans, strict=False):
        sound = samples(said.line.sound or b"")
        start_s = said.from_s - (first_audible(sound) or 0) / 16_000
        for begin_s in begins:
            from_s = start_s + begin_s
            until_s = from_s + length_s + slack_s
            first = first_audible(
                recording.agent, round(from_s * RATE_HZ), round(until_s * RATE_HZ)
            )
            found.append(Pause(length_s, first is not None, said.line.text))
    return found


# --- latency --------------------------------------------------------------------------------------


def latency_rows(
    case: str, answers: Iterable[MeasuredAnswer], picture: str
) -> list[MeasurementRow]:
    """Return the median and the 90th percentile of the time to the agent's first sound."""
    measured = [each for each in answers if each.latency_s is not None and each.latency_s > 0]
    latencies = sorted(1000 * (each.latency_s or 0) for each in measured)
    what, count = "end of turn to first sound", f"{len(latencies)} turns"
    if len(latencies) < 2:
        return [MeasurementRow(case, what, f"{count} were answered", holds=False, picture=picture)]
    split = [each.parts for each in measured if each.parts is not None]
    return [
        MeasurementRow(case, f"{what}: median", f"{count}; {_split(split, 0.5)}",
            figure=quantile(latencies, 0.5), picture=picture),
        MeasurementRow(case, f"{what}: 90 %", f"{count}; {_split(split, 0.9)}",
            figure=quantile(latencies, 0.9), picture=picture),
    ]  # fmt: skip


def _split(parts: Sequence[LatencyParts], share: float) -> str:
    if not parts:
        return "the speech stack does not tell its parts"
    names = {
        "silence waited for": [each.silence_s for each in parts],
        "speech to text": [each.transcription_s for each in parts],
        "turn model beside it": [each.end_of_turn_s for each in parts],
        "model": [each.first_text_s + each.first_clause_s for each in parts],
        "voice": [each.first_piece_s for each in parts],
        "line and player": [each.playback_s for each in parts],
    }
    return ", ".join(
        f"{name} {1000 * quantile(sorted(values), share):.0f}" for name, values in names.items()
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of ordered values; the median for 0.5."""
    if share == 0.5:
        return statistics.median(ordered)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
