"""The picture of a rehearsal: both sides of the call on one time axis, and each cut enlarged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import final

from ..audio.pcm import loudest
from ..control._state_words import state_words
from ._canvas import INK, LINE_HEIGHT, MUTED, Canvas
from ._colors import (
    AGENT,
    AGENT_PALE,
    CALLER,
    CALLER_PALE,
    CUT,
    DROPPED,
    DROPPED_PALE,
    DROPPED_TEXT,
    GRID,
    HELD,
    HELD_PALE,
    SENT,
    STATES,
)
from ._decision_words import decision_in_words
from ._interruption_closeup import CLOSEUP_HEIGHT, draw_closeup, draw_ignored_sound
from ._label_layout import UnplacedLabel, rows_below, sides
from ._recording import RATE_HZ, Recording
from ._recording_measurements import CallNotes
from ._result import IgnoredSound, MeasuredCut, Rehearsal, TurnDecision, agent_entry

LEAST_WIDTH, GREATEST_WIDTH = 1600, 6000
LEAST_PX_PER_S = 24
LEFT, RIGHT = 92, 36
MOST_CLOSEUPS = 4

_CALLER_TEXT = 148
_CALLER = (158, 248)
_AGENT = (274, 364)
_AGENT_TEXT = 374
_STATE = (444, 466)
_AXIS = 470
_DECISIONS = 502
_DECISION_ROWS = 4
_DECISIONS_HEIGHT = 78
_CLOSEUPS = 518
_TEXT_SIZE = 14
_SMALL = 12
_LEAST_TEXT = 24
"""Texts with less room than this, in logical pixels, are left out: only an ellipsis would fit."""


def draw(
    result: Rehearsal,
    notes: CallNotes,
    *,
    title: str = "A call, and how it was interrupted",
    verdict: str | None = None,
    ok: bool | None = None,
    closeups: int = MOST_CLOSEUPS,
) -> Canvas:
    """Draw the picture of a rehearsal.

    Args:
        result: The measurements.
        notes: What the recording does not show.
        title: The heading.
        verdict: The line below the heading; ``None`` sums up the cuts and the checks.
        ok: Whether the verdict is good news, which sets its colour; ``None`` uses ``result.ok``.
        closeups: The largest number of enlarged moments: cuts first, then the longest gaps.

    Raises:
        RehearsalExtraError: Pillow is not installed.
    """
    shown = _enlarged(result, closeups)
    needed = LEFT + RIGHT + result.recording.duration_s * LEAST_PX_PER_S
    width = min(max(LEAST_WIDTH, needed), GREATEST_WIDTH)
    top = _CLOSEUPS + (_DECISIONS_HEIGHT if result.decisions else 0)
    canvas = Canvas(width, top + CLOSEUP_HEIGHT * len(shown), _texts(result, notes))
    page = _Page(canvas, width, result, notes)
    page.draw(title, verdict, result.ok if ok is None else ok)
    for number, each in enumerate(shown):
        at = (canvas, top + number * CLOSEUP_HEIGHT, width)
        if isinstance(each, MeasuredCut):
            draw_closeup(*at, each, result.recording, result.held)
        else:
            draw_ignored_sound(*at, each, result.recording, result.held)
    return canvas


def _enlarged(result: Rehearsal, limit: int) -> list[MeasuredCut | IgnoredSound]:
    """Return the moments to enlarge, in order of time."""
    cuts = [cut for cut in result.cuts if cut.latency_s is not None]
    ignored_sounds = [ignored for ignored in result.ignored_sounds if ignored.utterance is not None]
    ignored_sounds.sort(key=lambda ignored: (ignored.is_cut, ignored.gap_s), reverse=True)
    chosen: list[MeasuredCut | IgnoredSound] = [*cuts, *ignored_sounds]
    return sorted(chosen[:limit], key=lambda each: each.said.from_s)


def _texts(result: Rehearsal, notes: CallNotes) -> list[str]:
    lines = [said.line.text for said in result.said]
    return [*lines, *notes.texts.values(), *(cut.heard + cut.unheard for cut in result.cuts)]


def _verdict(cut: MeasuredCut) -> str:
    if cut.latency_s is None:
        return "nothing to cut"
    after = f"{cut.latency_s * 1000:.0f} ms"
    return f"cut after {after}" if cut.is_reported else f"not cut: {after}"


def _decided_in(decision: TurnDecision) -> str:
    """Return the colour of a decision."""
    if decision.decision == "interruption":
        return CUT
    if decision.is_open:
        return DROPPED
    return HELD if decision.about == "barge_in" else MUTED


@dataclass(frozen=True, slots=True)
class _Label:
    """A text that belongs to a moment."""

    at_s: float
    text: str
    fill: str


@dataclass(frozen=True, slots=True)
class _Moment:
    """A line across both voices, with its label between them."""

    x: float
    text: str
    fill: str


@final
class _Page:
    def __init__(self, canvas: Canvas, width: float, result: Rehearsal, notes: CallNotes) -> None:
        self._canvas = canvas
        self._right = width - RIGHT
        self._result = result
        self._notes = notes
        self._recording: Recording = result.recording
        self._px_per_s = (self._right - LEFT) / max(self._recording.duration_s, 0.001)

    def draw(self, title: str, verdict: str | None, ok: bool) -> None:
        self._heading(title, verdict, ok)
        self._axis()
        self._states()
        self._speech()
        self._lanes()
        self._moments()
        self._decisions()
        said = [_Label(s.from_s, s.line.shown, CALLER) for s in self._result.said]
        self._labels(_CALLER_TEXT, said, above=True)
        self._labels(_AGENT_TEXT, self._agent_labels())

    def _x(self, at_s: float) -> float:
        return LEFT + min(max(at_s, 0.0), self._recording.duration_s) * self._px_per_s

    def _heading(self, title: str, verdict: str | None, ok: bool) -> None:
        failed = [check for check in self._result.checks if not check.ok]
        parts = [f"{self._recording.duration_s:.1f} s"]
        if verdict is None:
            parts += [_verdict(cut) for cut in self._result.cuts]
        if verdict is None and self._result.checks:
            count = f"{len(failed)} of {len(self._result.checks)} checks failed"
            parts.append(count if failed else f"all {len(self._result.checks)} checks hold")
        parts += [] if verdict is None else [verdict]
        self._canvas.text(LEFT, 24, title, 26)
        text = self._canvas.lines("  ·  ".join(parts), 16, self._right - LEFT, 2)
        self._canvas.write_lines(LEFT, 62, text, 16, MUTED if ok else CUT)
        self._legend()

    def _legend(self) -> None:
        x = self._right
        entries = [("never heard", DROPPED), ("agent, as heard", AGENT), ("caller", CALLER)]
        if self._recording.sent is not None:
            entries.insert(2, ("the caller's line", SENT))
        if self._result.held:
            entries.insert(1, ("held", HELD_PALE))
        for text, fill in entries:
            x -= self._canvas.text_width(text, _TEXT_SIZE)
            self._canvas.text(x, 40, text, _TEXT_SIZE, MUTED, "lm")
            x -= 20
            self._canvas.bar((x, 33, x + 14, 47), fill, 3)
            x -= 22

    def _axis(self) -> None:
        step = next(s for s in (1, 2, 5, 10, 30, 60, 600) if s * self._px_per_s >= 60)
        for second in range(0, int(self._recording.duration_s) + 1, step):
            x = self._x(second)
            self._canvas.line((x, _CALLER[0] - 4), (x, _STATE[1] + 4), GRID)
            self._canvas.text(x, _AXIS + 6, f"{second} s", 13, MUTED, "ma")

    def _states(self) -> None:
        top, bottom = _STATE
        changes = [(0.0, "idle"), *self._recording.states, (self._recording.duration_s, "")]
        for (from_s, state), (until_s, _) in pairwise(changes):
            left, right = self._x(from_s), self._x(until_s)
            self._canvas.bar((left, top, right, bottom), STATES.get(state, GRID), 3)
            words = state_words(state)
            if right - left > self._canvas.text_width(words, 12) + 8:
                middle = ((left + right) / 2, (top + bottom) / 2)
                self._canvas.text(*middle, words, 12, INK, "mm")
        self._canvas.text(LEFT - 12, (top + bottom) / 2, "state", _TEXT_SIZE, MUTED, "rm")

    def _speech(self) -> None:
        for said in self._result.said:
            box = (self._x(said.from_s), _CALLER[0], self._x(said.until_s), _CALLER[1])
            self._canvas.bar(box, CALLER_PALE, 4)
        for span in self._recording.spans:
            left, right = self._x(span.start / RATE_HZ), self._x(span.stop / RATE_HZ)
            self._canvas.bar((left, _AGENT[0], right, _AGENT[1]), AGENT_PALE, 4)
        for cut in self._result.cuts:
            self._dropped(cut)
        for held in self._result.held:
            box = (self._x(held.from_s), _AGENT[0], self._x(held.until_s), _AGENT[1])
            self._canvas.bar(box, HELD_PALE, 2)

    def _lanes(self) -> None:
        recording = self._recording
        for name, (top, bottom), track, fill in (
            ("caller", _CALLER, recording.caller, CALLER),
            ("agent", _AGENT, recording.agent, AGENT),
        ):
            middle = (top + bottom) / 2
            self._canvas.line((LEFT, middle), (self._right, middle), fill)
            box = (LEFT, top + 4, self._right, bottom - 4)
            peak = loudest(track)
            if track is recording.caller and recording.sent is not None:
                peak = max(peak, loudest(recording.sent))  # a room may be louder than its caller
                self._canvas.wave(recording.sent, box, RATE_HZ, self._px_per_s, peak, SENT)
            self._canvas.wave(track, box, RATE_HZ, self._px_per_s, peak, fill)
            self._canvas.text(LEFT - 12, middle, name, 16, fill, "rm")

    def _dropped(self, cut: MeasuredCut) -> None:
        """Draw the dropped rest of a cut utterance in a pale colour, up to the next heard audio."""
        if cut.utterance is None or not cut.is_reported:
            return
        start, rest = self._recording.dropped(cut.utterance)
        left, right = self._x(start / RATE_HZ), self._x((start + len(rest)) / RATE_HZ)
        if right - left < 2:
            return
        self._canvas.bar((left, _AGENT[0], right, _AGENT[1]), DROPPED_PALE)
        self._canvas.hatch((left, _AGENT[0], right, _AGENT[1]), GRID)
        box = (left, _AGENT[0] + 4, right, _AGENT[1] - 4)
        peak = loudest(self._recording.agent)
        self._canvas.wave(rest, box, RATE_HZ, self._px_per_s, peak, DROPPED)
        text = f"{cut.dropped_s:.1f} s dropped"
        width = self._canvas.text_width(text, 12) + 10
        if right - left > width + 70:
            self._canvas.bar((right - width, _AGENT[0], right, _AGENT[0] + 18), DROPPED_PALE, 3)
            self._canvas.text(right - 5, _AGENT[0] + 9, text, 12, MUTED, "rm")

    def _moments(self) -> None:
        """Mark each cut, and how long each ignored sound held the agent; labels do not overlap."""
        moments = [self._cut_at(cut) for cut in self._result.cuts]
        moments += [self._ignored_sound_at(ignored) for ignored in self._result.ignored_sounds]
        shown = sorted((each for each in moments if each is not None), key=lambda each: each.x)
        marks = [
            UnplacedLabel(each.x, self._canvas.text_width(each.text, 13) + 14) for each in shown
        ]
        for moment, mark, left in zip(shown, marks, sides(marks, LEFT, self._right), strict=True):
            if left is not None:
                box = (left, _CALLER[1] + 3, left + mark.width, _AGENT[0] - 3)
                self._canvas.bar(box, moment.fill, 3)
                middle = (_CALLER[1] + _AGENT[0]) / 2
                self._canvas.text(left + 7, middle, moment.text, 13, "white", "lm")

    def _cut_at(self, cut: MeasuredCut) -> _Moment | None:
        if cut.silent_at_s is None or cut.latency_s is None:
            return None
        x = self._x(cut.silent_at_s)
        self._canvas.dashes(self._x(cut.said.from_s), _CALLER[0] - 6, _AGENT[1] + 4, CUT)
        self._canvas.line((x, _CALLER[0] - 6), (x, _AGENT[1] + 4), CUT, 2)
        return _Moment(x, _verdict(cut), CUT)

    def _ignored_sound_at(self, ignored: IgnoredSound) -> _Moment | None:
        if ignored.utterance is None:
            return None
        text = f"gap {ignored.gap_s * 1000:.0f} ms" if ignored.gap_s else "no gap"
        text, fill = ("cut", CUT) if ignored.is_cut else (text, HELD if ignored.gap_s else MUTED)
        x = self._x(ignored.said.from_s)
        self._canvas.dashes(x, _CALLER[0] - 6, _AGENT[1] + 4, fill)
        return _Moment(x, text, fill)

    def _decisions(self) -> None:
        """Write the decisions below the axis, each at its moment."""
        if not self._result.decisions:
            return
        self._canvas.text(LEFT - 12, _DECISIONS + 8, "decided", _TEXT_SIZE, MUTED, "rm")
        # The most important ones get the room first; the later of two neighbours goes above.
        order = sorted(self._result.decisions, key=lambda each: (each.is_open, -each.at_s))
        marks = [self._mark_of(decision) for decision in order]
        places = rows_below(marks, _DECISION_ROWS)
        for decision, (x, _), place in zip(order, marks, places, strict=True):
            fill = _decided_in(decision)
            self._canvas.line((x, _STATE[1] + 2), (x, _AXIS + 3), fill)
            if place is None:
                continue  # the tick at the state represents it
            bottom = _DECISIONS + place.row * _SMALL * LINE_HEIGHT + 14
            self._canvas.line((x, _DECISIONS - 6), (x, bottom), fill)
            room = place.width - 4
            (text,) = self._canvas.lines(self._words_of(decision), _SMALL, room, 1)
            self._canvas.text(x + 4, bottom - 14, text, _SMALL, fill)

    def _mark_of(self, decision: TurnDecision) -> UnplacedLabel:
        x = self._x(decision.at_s)
        width = 5 + self._canvas.text_width(self._words_of(decision), _SMALL)
        return UnplacedLabel(x, max(20.0, min(300.0, width, self._right - x)))

    def _words_of(self, decision: TurnDecision) -> str:
        before = [said for said in self._result.said if said.from_s <= decision.at_s]
        return decision_in_words(decision, before[-1].line.shown if before else "")

    # --- texts ----------------------------------------------------------------------------------

    def _agent_labels(self) -> list[_Label]:
        labels = []
        cuts = {cut.utterance: cut for cut in self._result.cuts}
        starts: dict[int, float] = {}
        for span in self._recording.spans:
            starts.setdefault(span.utterance, span.start / RATE_HZ)
        for utterance, at_s in starts.items():
            cut = cuts.get(utterance)
            text = self._heard_text(utterance)
            if cut is not None and cut.unheard.strip():
                text = f"{cut.heard} …"
            labels.append(_Label(at_s, text.strip(), AGENT))
            if cut is not None and cut.unheard.strip() and cut.silent_at_s is not None:
                labels.append(_Label(cut.silent_at_s, f"… {cut.unheard.strip()}", DROPPED_TEXT))
        return sorted(labels, key=lambda label: label.at_s)

    def _heard_text(self, utterance: int) -> str:
        """Return the text of an utterance, or its heard part if it was cut."""
        text, answer = self._notes.texts.get(utterance, ""), self._notes.answers.get(utterance)
        entry = agent_entry(self._notes.history, answer)
        if not entry or entry["generated"] != text or entry["heard"] == text:
            return text
        return f"{entry['heard']} …"

    def _labels(self, y: float, labels: Sequence[_Label], *, above: bool = False) -> None:
        """Write texts next to each other, each as wide as the next one allows."""
        edges = [*(self._x(label.at_s) for label in labels), self._right]
        for label, left, right in zip(labels, edges, edges[1:], strict=False):
            width = right - left - 12
            if width < _LEAST_TEXT:
                continue  # one letter and dots would only clutter the picture
            lines = self._canvas.lines(label.text, _TEXT_SIZE, width, 3)
            top = y - len(lines) * _TEXT_SIZE * LINE_HEIGHT if above else y
            self._canvas.write_lines(left + 2, top, lines, _TEXT_SIZE, label.fill)
