"""The picture of a rehearsal: both sides of the call on one time axis, and each cut enlarged."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TypeAlias, final

from ..audio.pcm import loudest
from ..control._call_state import state_words
from ._decision_words import decision_in_words
from ._recording import RATE_HZ, Recording
from ._recording_measurements import CallNotes
from ._rehearsal_result import (
    IgnoredSound,
    MeasuredCut,
    RecordedLine,
    Rehearsal,
    TurnDecision,
    agent_entry,
)
from .canvas import GRID, INK, LINE_HEIGHT, MUTED, Canvas

LEAST_WIDTH, GREATEST_WIDTH = 1600, 6000
LEAST_PX_PER_S = 24
LEFT, RIGHT = 92, 36
MOST_CLOSEUPS = 4
CLOSEUP_HEIGHT, CLOSEUP_WIDTH = 330, 1000
BEFORE_S, AFTER_S = 0.5, 1.0
"""What an enlargement shows before and after the caller's first sound."""

# Blue, teal and magenta differ for every kind of colour vision.
CALLER, CALLER_PALE, SENT = "#2563eb", "#e3ecfd", "#cbd5e1"
AGENT, AGENT_PALE = "#0f766e", "#d9f3ef"
CUT, HELD, HELD_PALE = "#be185d", "#b45309", "#fde9c8"
DROPPED, DROPPED_PALE, DROPPED_TEXT = "#94a3b8", "#f8fafc", "#64748b"
STATES = {
    "idle": "#f3f4f6",
    "listening": "#c7dafd",
    "thinking": "#fde68a",
    "tool": "#ddd6fe",
    "speaking": "#a7e8df",
    "closed": "#d1d5db",
}

_CALLER, _AGENT = (158, 248), (274, 364)
_STATE = (444, 466)
_AXIS, _DECISIONS, _CLOSEUPS = 470, 502, 518
_DECISION_ROWS, _DECISIONS_HEIGHT = 4, 78
_TEXT, _SMALL = 14, 12
_GAP = 6.0
"""Logical pixels between two labels, and between a label and another label's line."""

_LEAST_LABEL, _LEAST_TEXT = 80.0, 24
"""Labels and texts with less room than this, in logical pixels, are left out: they would say
nothing."""

_Lane: TypeAlias = tuple[float, float]
"""The top and the bottom of one side's voice."""

_Label: TypeAlias = tuple[float, str, str]
"""A moment in seconds, what is written there, and its colour."""


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
    texts = [
        *(said.line.text for said in result.said),
        *notes.texts.values(),
        *(cut.heard + cut.unheard for cut in result.cuts),
    ]
    canvas = Canvas(width, top + CLOSEUP_HEIGHT * len(shown), texts)
    page = _PicturePage(canvas, width, result, notes)
    page.draw(title, verdict, result.ok if ok is None else ok)
    for number, each in enumerate(shown):
        at = (canvas, top + number * CLOSEUP_HEIGHT, width, result)
        if isinstance(each, MeasuredCut):
            _draw_cut(*at, each)
        else:
            _draw_ignored_sound(*at, each)
    return canvas


def _enlarged(result: Rehearsal, limit: int) -> list[MeasuredCut | IgnoredSound]:
    """Return the moments to enlarge, in order of time."""
    cuts = [cut for cut in result.cuts if cut.latency_s is not None]
    ignored_sounds = [ignored for ignored in result.ignored_sounds if ignored.utterance is not None]
    ignored_sounds.sort(key=lambda ignored: (ignored.is_cut, ignored.gap_s), reverse=True)
    chosen: list[MeasuredCut | IgnoredSound] = [*cuts, *ignored_sounds]
    return sorted(chosen[:limit], key=lambda each: each.said.from_s)


@final
class _Voices:
    """Both voices over a stretch of the call, one above the other.

    Attributes:
        px_per_s: Logical pixels for each second.
    """

    def __init__(
        self,
        canvas: Canvas,
        result: Rehearsal,
        across: tuple[float, float],
        stretch: tuple[float, float],
        lanes: tuple[_Lane, _Lane],
    ) -> None:
        self._canvas = canvas
        self._result = result
        self._recording: Recording = result.recording
        self._left, self._right = across
        self._from_s, self._until_s = stretch
        self._caller, self._agent = lanes
        self.px_per_s = (self._right - self._left) / max(self._until_s - self._from_s, 0.001)

    def x(self, at_s: float) -> float:
        return self._left + (min(max(at_s, self._from_s), self._until_s) - self._from_s) * (
            self.px_per_s
        )

    def draw(self, said: Iterable[RecordedLine], dropped: Iterable[int]) -> None:
        """Draw what was said and heard, the dropped rests of utterances, and holds."""
        recording = self._recording
        for line in said:
            self._back(self._caller, line.from_s, line.until_s, CALLER_PALE)
        for span in recording.spans:
            self._back(self._agent, span.start / RATE_HZ, span.stop / RATE_HZ, AGENT_PALE)
        peak = loudest(recording.agent)
        for utterance in dropped:
            start, rest = recording.dropped(utterance)
            stop_s = (start + len(rest)) / RATE_HZ
            self._back(self._agent, start / RATE_HZ, stop_s, DROPPED_PALE)
            box = (self.x(start / RATE_HZ), self._agent[0], self.x(stop_s), self._agent[1])
            self._canvas.hatch(box, GRID)
            self._wave(self._agent, rest, start / RATE_HZ, peak, DROPPED)
        for held in self._result.held:
            self._back(self._agent, held.from_s, held.until_s, HELD_PALE)
        self._lane("agent", self._agent, recording.agent, peak, AGENT)
        peak = loudest(recording.caller)
        if recording.sent is not None:
            peak = max(peak, loudest(recording.sent))  # a room may be louder than its caller
            self._wave(self._caller, recording.sent, 0.0, peak, SENT)
        self._lane("caller", self._caller, recording.caller, peak, CALLER)

    def _lane(self, name: str, lane: _Lane, track: array[int], peak: int, fill: str) -> None:
        middle = sum(lane) / 2
        self._canvas.line((self._left, middle, self._right, middle), fill)
        self._wave(lane, track, 0.0, peak, fill)
        self._canvas.text(self._left - 12, middle, name, 16, fill, "rm")

    def _back(self, lane: _Lane, from_s: float, until_s: float, fill: str) -> None:
        self._canvas.bar((self.x(from_s), lane[0], self.x(until_s), lane[1]), fill, 4)

    def _wave(self, lane: _Lane, values: array[int], from_s: float, peak: int, fill: str) -> None:
        box = (self.x(from_s), lane[0] + 4, self._right, lane[1] - 4)
        before = max(0, round((self._from_s - from_s) * RATE_HZ))
        until = round((self._until_s - from_s) * RATE_HZ)
        self._canvas.wave(values[before:until], box, RATE_HZ, self.px_per_s, peak, fill)


@final
class _PicturePage:
    """The whole call."""

    def __init__(self, canvas: Canvas, width: float, result: Rehearsal, notes: CallNotes) -> None:
        self._canvas = canvas
        self._right = width - RIGHT
        self._result = result
        self._notes = notes
        self._until_s = result.recording.duration_s
        self._cuts = [cut for cut in result.cuts if cut.is_reported and cut.utterance is not None]
        self._voices = _Voices(
            canvas, result, (LEFT, self._right), (0.0, self._until_s), (_CALLER, _AGENT)
        )
        self._x = self._voices.x

    def draw(self, title: str, verdict: str | None, ok: bool) -> None:
        self._heading(title, self._summary() if verdict is None else [verdict], ok)
        self._axis()
        self._states()
        dropped = [cut.utterance for cut in self._cuts if cut.utterance is not None]
        self._voices.draw(self._result.said, dropped)
        for cut in self._cuts:
            self._name_dropped(cut)
        self._moments()
        self._decisions()
        self._texts(148, [(s.from_s, s.line.shown, CALLER) for s in self._result.said], above=True)
        self._texts(374, self._agent_texts())

    def _summary(self) -> list[str]:
        checks = self._result.checks
        failed = sum(not check.ok for check in checks)
        told = (
            f"{failed} of {len(checks)} checks failed"
            if failed
            else (f"all {len(checks)} checks hold")
        )
        return [*map(_verdict, self._result.cuts), *([told] if checks else [])]

    def _heading(self, title: str, told: list[str], ok: bool) -> None:
        self._canvas.text(LEFT, 24, title, 26)
        told = [f"{self._until_s:.1f} s", *told]
        fill, room = MUTED if ok else CUT, self._right - LEFT
        self._canvas.paragraph(LEFT, 62, "  ·  ".join(told), 16, fill, width=room, limit=2)
        x = self._right
        legend = [
            ("never heard", DROPPED, True),
            ("held", HELD_PALE, bool(self._result.held)),
            ("agent, as heard", AGENT, True),
            ("the caller's line", SENT, self._result.recording.sent is not None),
            ("caller", CALLER, True),
        ]
        for text, fill in [(text, fill) for text, fill, is_shown in legend if is_shown]:
            x -= self._canvas.text_width(text, _TEXT)
            self._canvas.text(x, 40, text, _TEXT, MUTED, "lm")
            self._canvas.bar((x - 20, 33, x - 6, 47), fill, 3)
            x -= 42

    def _axis(self) -> None:
        step = next(s for s in (1, 2, 5, 10, 30, 60, 600) if s * self._voices.px_per_s >= 60)
        for second in range(0, int(self._until_s) + 1, step):
            x = self._x(second)
            self._canvas.line((x, _CALLER[0] - 4, x, _STATE[1] + 4), GRID)
            self._canvas.text(x, _AXIS + 6, f"{second} s", 13, MUTED, "ma")

    def _states(self) -> None:
        top, bottom = _STATE
        changes = [(0.0, "idle"), *self._result.recording.states, (self._until_s, "")]
        for (from_s, state), (until_s, _) in pairwise(changes):
            left, right = self._x(from_s), self._x(until_s)
            self._canvas.bar((left, top, right, bottom), STATES.get(state, GRID), 3)
            words = state_words(state)
            if right - left > self._canvas.text_width(words, _SMALL) + 8:
                middle = ((left + right) / 2, (top + bottom) / 2)
                self._canvas.text(*middle, words, _SMALL, INK, "mm")
        self._canvas.text(LEFT - 12, (top + bottom) / 2, "state", _TEXT, MUTED, "rm")

    def _name_dropped(self, cut: MeasuredCut) -> None:
        assert cut.utterance is not None  # or it would not be shown
        start, rest = self._result.recording.dropped(cut.utterance)
        left, right = self._x(start / RATE_HZ), self._x((start + len(rest)) / RATE_HZ)
        text = f"{cut.dropped_s:.1f} s dropped"
        width = self._canvas.text_width(text, _SMALL) + 10
        if right - left > width + 70:
            self._canvas.bar((right - width, _AGENT[0], right, _AGENT[0] + 18), DROPPED_PALE, 3)
            self._canvas.text(right - 5, _AGENT[0] + 9, text, _SMALL, MUTED, "rm")

    def _moments(self) -> None:
        """Mark each cut, and how long each ignored sound held the agent; labels do not overlap."""
        moments: list[_Label] = []
        for cut in self._result.cuts:
            if cut.silent_at_s is not None and cut.latency_s is not None:
                moments.append((cut.silent_at_s, _verdict(cut), CUT))
                self._canvas.dashes(self._x(cut.said.from_s), _CALLER[0] - 6, _AGENT[1] + 4, CUT)
                x = self._x(cut.silent_at_s)
                self._canvas.line((x, _CALLER[0] - 6, x, _AGENT[1] + 4), CUT, 2)
        for ignored in self._result.ignored_sounds:
            if ignored.utterance is not None:
                text = f"gap {ignored.gap_s * 1000:.0f} ms" if ignored.gap_s else "no gap"
                fill = HELD if ignored.gap_s else MUTED
                text, fill = ("cut", CUT) if ignored.is_cut else (text, fill)
                moments.append((ignored.said.from_s, text, fill))
                x = self._x(ignored.said.from_s)
                self._canvas.dashes(x, _CALLER[0] - 6, _AGENT[1] + 4, fill)
        moments.sort()
        ends = [self._x(at_s) - _GAP for at_s, *_ in moments[1:]] + [self._right]
        free_from: float = LEFT
        for (at_s, text, fill), end in zip(moments, ends, strict=False):
            x, width = self._x(at_s), self._canvas.text_width(text, 13) + 14
            left = x if x >= free_from and x + width <= end else x - width
            free_from, is_free = x + _GAP, left >= free_from
            if is_free:
                free_from = max(free_from, left + width + _GAP)
                self._canvas.bar((left, _CALLER[1] + 3, left + width, _AGENT[0] - 3), fill, 3)
                middle = (_CALLER[1] + _AGENT[0]) / 2
                self._canvas.text(left + 7, middle, text, 13, "white", "lm")

    def _decisions(self) -> None:
        """Write the decisions below the axis, each at its moment, and mark those without room."""
        decisions = self._result.decisions
        if not decisions:
            return
        self._canvas.text(LEFT - 12, _DECISIONS + 8, "decided", _TEXT, MUTED, "rm")
        for decision in decisions:
            x = self._x(decision.at_s)
            self._canvas.line((x, _STATE[1] + 2, x, _AXIS + 3), _decided_in(decision))
        rows = self._decision_rows(decisions)
        if len(rows) < len(decisions):  # those that only hold the voice give way
            rows = self._decision_rows([each for each in decisions if not each.is_open])
        for decision, x, row, width in rows:
            fill, y = _decided_in(decision), _DECISIONS + row * _SMALL * LINE_HEIGHT
            self._canvas.line((x, _DECISIONS - 6, x, y + 14), fill)
            words = self._words_of(decision)
            self._canvas.paragraph(x + 4, y, words, _SMALL, fill, width=width - 4, limit=1)

    def _decision_rows(
        self, decisions: Sequence[TurnDecision]
    ) -> list[tuple[TurnDecision, float, int, float]]:
        """Return each decision that has room, with its place, its row, and how wide it may be.

        The line of a decision crosses all rows above its own, so the later of two neighbours goes
        above, and the earlier one ends before the line of any that is as far below.
        """
        rows: list[tuple[TurnDecision, float, int, float]] = []
        for decision in sorted(decisions, key=lambda each: each.at_s, reverse=True):
            x = self._x(decision.at_s)
            words = self._canvas.text_width(self._words_of(decision), _SMALL) + 5
            rooms = [
                min([self._right, *(other - _GAP for _, other, at, _ in rows if at >= row)]) - x
                for row in range(_DECISION_ROWS)
            ]
            width = min(300.0, words)
            row = next((n for n, room in enumerate(rooms) if room >= width), len(rooms) - 1)
            if rooms[row] >= min(_LEAST_LABEL, width):
                rows.append((decision, x, row, min(width, rooms[row])))
        return rows

    def _words_of(self, decision: TurnDecision) -> str:
        before = [said for said in self._result.said if said.from_s <= decision.at_s]
        return decision_in_words(decision, before[-1].line.shown if before else "")

    def _agent_texts(self) -> list[_Label]:
        labels: list[_Label] = []
        cuts = {cut.utterance: cut for cut in self._result.cuts if cut.unheard.strip()}
        starts: dict[int, float] = {}
        for span in self._result.recording.spans:
            starts.setdefault(span.utterance, span.start / RATE_HZ)
        for utterance, at_s in starts.items():
            cut = cuts.get(utterance)
            if cut is None:
                labels.append((at_s, self._heard_text(utterance).strip(), AGENT))
                continue
            labels.append((at_s, f"{cut.heard} …".strip(), AGENT))
            if cut.silent_at_s is not None:
                labels.append((cut.silent_at_s, f"… {cut.unheard.strip()}", DROPPED_TEXT))
        return sorted(labels, key=lambda label: label[0])

    def _heard_text(self, utterance: int) -> str:
        text, answer = self._notes.texts.get(utterance, ""), self._notes.answers.get(utterance)
        entry = agent_entry(self._notes.history, answer)
        if not entry or entry["generated"] != text or entry["heard"] == text:
            return text
        return f"{entry['heard']} …"

    def _texts(self, y: float, labels: Sequence[_Label], *, above: bool = False) -> None:
        """Write texts next to each other, each as wide as the next one allows."""
        edges = [*(self._x(at_s) for at_s, *_ in labels), self._right]
        for (_, text, fill), (left, right) in zip(labels, pairwise(edges), strict=True):
            room = right - left - 12
            if room >= _LEAST_TEXT:
                self._canvas.paragraph(
                    left + 2, y, text, _TEXT, fill, width=room, limit=3, above=above
                )


def _verdict(cut: MeasuredCut) -> str:
    if cut.latency_s is None:
        return "nothing to cut"
    after = f"{cut.latency_s * 1000:.0f} ms"
    return f"cut after {after}" if cut.is_reported else f"not cut: {after}"


def _decided_in(decision: TurnDecision) -> str:
    if decision.decision == "interruption":
        return CUT
    if decision.is_open:
        return DROPPED
    return HELD if decision.about == "barge_in" else MUTED


# --- enlargements -------------------------------------------------------------------------------


def _draw_cut(
    canvas: Canvas, top: float, width: float, result: Rehearsal, cut: MeasuredCut
) -> None:
    assert cut.latency_s is not None
    assert cut.silent_at_s is not None
    text = f"{cut.latency_s * 1000:.0f} ms from the caller's first sound to the agent's last"
    dropped = cut.utterance if cut.is_reported else None
    title, measured = (
        f"The cut, enlarged: {cut.said.line.shown}",
        (cut.said.from_s, cut.silent_at_s),
    )
    _draw_closeup(canvas, top, result, title, cut.said, dropped, measured, text, CUT)
    heard = [
        ("heard", cut.heard.strip() or "nothing", AGENT),
        ("never heard", cut.unheard.strip() or "nothing", DROPPED_TEXT),
    ]
    late = f"{cut.late_s * 1000:.0f} ms of it played later"
    found = [(f"{cut.dropped_s:.2f} s of audio dropped", INK), (late, CUT if cut.late_s else INK)]
    _write_beside(canvas, top, width, heard, found)


def _draw_ignored_sound(
    canvas: Canvas, top: float, width: float, result: Rehearsal, ignored: IgnoredSound
) -> None:
    """Draw a sound that was meant to leave the agent speaking, enlarged."""
    said = ignored.said
    start_s = said.from_s if ignored.gap_from_s is None else ignored.gap_from_s
    text, fill = f"the agent stands still for {ignored.gap_s * 1000:.0f} ms", HELD
    if ignored.is_cut:
        text, fill = "the agent is cut", CUT
    elif not ignored.gap_s:
        text = "the agent continues without a gap"
    dropped = ignored.utterance if ignored.is_cut else None
    title, measured = f"Enlarged: {said.line.shown}", (start_s, start_s + ignored.gap_s)
    _draw_closeup(canvas, top, result, title, said, dropped, measured, text, fill)
    decided = [
        (f"after {each.at_s - said.from_s:.2f} s", decision_in_words(each, said.line.shown), INK)
        for each in ignored.decisions[:2]
    ]
    lost = f"{ignored.lost_s * 1000:.0f} ms of the agent's speech lost"
    calls = f"turns: {ignored.turns}, model calls: {ignored.model_calls}"
    found = [
        (lost, CUT if ignored.lost_s else INK),
        (calls, CUT if ignored.turns or ignored.model_calls else INK),
    ]
    if ignored.dry_s:
        found.append((f"{ignored.dry_s * 1000:.0f} ms without anything to play", INK))
    _write_beside(canvas, top, width, decided or [("decided", "nothing", MUTED)], found)


def _draw_closeup(
    canvas: Canvas,
    top: float,
    result: Rehearsal,
    title: str,
    said: RecordedLine,
    dropped: int | None,
    measured_s: tuple[float, float],
    measured: str,
    fill: str,
) -> None:
    """Draw both voices around a line, and what is measured between two moments."""
    caller, agent = (top + 62, top + 142), (top + 182, top + 262)
    right = LEFT + CLOSEUP_WIDTH
    # An agent that was not cut keeps speaking; show the end of its speech too.
    stretch = max(0.0, said.from_s - BEFORE_S), max(said.from_s + AFTER_S, measured_s[1] + 0.3)
    voices = _Voices(canvas, result, (LEFT, right), stretch, (caller, agent))
    canvas.text(LEFT, top + 8, title, 18)
    step_ms = next(ms for ms in (100, 200, 500, 1000, 5000) if ms * voices.px_per_s / 1000 >= 50)
    first, last = (int((at_s - said.from_s) * 1000 / step_ms) for at_s in stretch)
    for number in range(first, last + 1):
        x = voices.x(said.from_s + number * step_ms / 1000)
        canvas.line((x, caller[0], x, agent[1] + 6), GRID)
        canvas.text(x, agent[1] + 10, f"{number * step_ms} ms", 13, MUTED, "ma")
    voices.draw([said], [] if dropped is None else [dropped])
    begin, end = map(voices.x, measured_s)
    y = (caller[1] + agent[0]) / 2
    canvas.dashes(begin, caller[0] - 6, agent[1] + 6, fill)
    if end > begin:
        canvas.line((end, caller[0] - 6, end, agent[1] + 6), fill, 2)
        canvas.line((begin, y, end, y), fill, 1.5)
        for x in (begin, end):
            canvas.line((x, y - 5, x, y + 5), fill, 1.5)
    width = canvas.text_width(measured, 15)
    if end + 10 + width <= right:
        canvas.text(end + 10, y, measured, 15, fill, "lm")
    else:
        canvas.bar((end - 14 - width, y - 22, end - 6, y - 3), "white")
        canvas.text(end - 10, y - 6, measured, 15, fill, "rs")


def _write_beside(
    canvas: Canvas,
    top: float,
    width: float,
    blocks: Iterable[tuple[str, str, str]],
    found: Iterable[tuple[str, str]],
) -> None:
    """Write texts under their titles to the right of an enlargement, and figures below them."""
    left, y = LEFT + CLOSEUP_WIDTH + 48, top + 62
    for title, text, fill in blocks:
        canvas.text(left, y, title, 13, MUTED)
        room = width - RIGHT - left
        y = canvas.paragraph(left, y + 20, text, 16, fill, width=room, limit=4) + 12
    for line, (text, fill) in enumerate(found):
        canvas.text(left, y + 22 * line, text, 14, fill)
