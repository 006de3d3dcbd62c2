"""One moment enlarged: the caller's first sound, what the agent did, and why."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..audio.pcm import loudest
from ._canvas import INK, MUTED, Canvas
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
)
from ._decision_words import decision_in_words
from ._recording import RATE_HZ, Recording
from ._result import Held, IgnoredSound, MeasuredCut, RecordedLine

CLOSEUP_HEIGHT: Final = 330
BEFORE_S, AFTER_S = 0.5, 1.0
LEFT, WIDTH = 92, 1000
"""Where the enlargement is; the texts are to its right."""

_CALLER = (62, 142)
_AGENT = (182, 262)


@dataclass(frozen=True, slots=True)
class MeasuredSpan:
    """What is measured in a close-up: the time from one moment to another."""

    from_s: float
    until_s: float
    text: str
    fill: str


def draw_closeup(
    canvas: Canvas,
    top: float,
    width: float,
    cut: MeasuredCut,
    recording: Recording,
    held: Sequence[Held] = (),
) -> None:
    """Draw a cut that was heard, enlarged."""
    assert cut.latency_s is not None
    assert cut.silent_at_s is not None
    text = f"{cut.latency_s * 1000:.0f} ms from the caller's first sound to the agent's last"
    measure = MeasuredSpan(cut.said.from_s, cut.silent_at_s, text, CUT)
    lanes = _VoiceLanes(canvas, top, cut.said, recording, measure, held)
    lanes.draw(
        f"The cut, enlarged: {cut.said.line.shown}", cut.utterance if cut.is_reported else None
    )
    left = LEFT + WIDTH + 48
    y = _words(
        *(canvas, left, top + 62, width - 36),
        [
            ("heard", cut.heard.strip() or "nothing", AGENT),
            ("never heard", cut.unheard.strip() or "nothing", DROPPED_TEXT),
        ],
    )
    canvas.text(left, y, f"{cut.dropped_s:.2f} s of audio dropped", 14, INK)
    late = f"{cut.late_s * 1000:.0f} ms of it played later"
    canvas.text(left, y + 22, late, 14, INK if cut.late_s == 0 else CUT)


def draw_ignored_sound(
    canvas: Canvas,
    top: float,
    width: float,
    ignored: IgnoredSound,
    recording: Recording,
    held: Sequence[Held] = (),
) -> None:
    """Draw a sound that was meant to leave the agent speaking, enlarged."""
    start_s = ignored.said.from_s if ignored.gap_from_s is None else ignored.gap_from_s
    text = f"the agent stands still for {ignored.gap_s * 1000:.0f} ms"
    if ignored.is_cut:
        text = "the agent is cut"
    elif not ignored.gap_s:
        text = "the agent continues without a gap"
    measure = MeasuredSpan(start_s, start_s + ignored.gap_s, text, CUT if ignored.is_cut else HELD)
    lanes = _VoiceLanes(canvas, top, ignored.said, recording, measure, held)
    lanes.draw(
        f"Enlarged: {ignored.said.line.shown}", ignored.utterance if ignored.is_cut else None
    )
    found = [
        (
            f"after {each.at_s - ignored.said.from_s:.2f} s",
            decision_in_words(each, ignored.said.line.shown),
            INK,
        )
        for each in ignored.decisions
    ]
    left = LEFT + WIDTH + 48
    y = _words(canvas, left, top + 62, width - 36, found[:2] or [("decided", "nothing", MUTED)])
    if ignored.dry_s:
        dry = f"{ignored.dry_s * 1000:.0f} ms without anything to play"
        canvas.text(left, y + 44, dry, 14, INK)
    lost = f"{ignored.lost_s * 1000:.0f} ms of the agent's speech lost"
    canvas.text(left, y, lost, 14, INK if ignored.lost_s == 0 else CUT)
    calls = f"turns: {ignored.turns}, model calls: {ignored.model_calls}"
    canvas.text(left, y + 22, calls, 14, CUT if ignored.turns or ignored.model_calls else INK)


class _VoiceLanes:
    def __init__(
        self,
        canvas: Canvas,
        top: float,
        said: RecordedLine,
        recording: Recording,
        measure: MeasuredSpan,
        held: Sequence[Held],
    ) -> None:
        self._canvas = canvas
        self._top = top
        self._said = said
        self._recording = recording
        self._measured = measure
        self._holds = held
        self._peaks = {_CALLER: loudest(recording.caller), _AGENT: loudest(recording.agent)}
        self._from_s = max(0.0, said.from_s - BEFORE_S)
        # An agent that was not cut keeps speaking; show the end of its speech too.
        self._until_s = max(said.from_s + AFTER_S, measure.until_s + 0.3)
        self._px_per_s = WIDTH / (self._until_s - self._from_s)

    def draw(self, title: str, dropped: int | None) -> None:
        """Draw both lanes; ``dropped`` is the utterance whose rest was dropped."""
        self._canvas.text(LEFT, self._top + 8, title, 18)
        self._grid()
        self._caller()
        self._agent(dropped)
        self._measure()

    def _x(self, at_s: float) -> float:
        return LEFT + (min(max(at_s, self._from_s), self._until_s) - self._from_s) * self._px_per_s

    def _grid(self) -> None:
        step_ms = next(ms for ms in (100, 200, 500, 1000, 5000) if ms * self._px_per_s / 1000 >= 50)
        zero_s = self._said.from_s
        first = -int((zero_s - self._from_s) * 1000 / step_ms)
        for number in range(first, int((self._until_s - zero_s) * 1000 / step_ms) + 1):
            x = self._x(zero_s + number * step_ms / 1000)
            self._canvas.line((x, self._top + _CALLER[0]), (x, self._top + _AGENT[1] + 6), GRID)
            text = f"{number * step_ms} ms"
            self._canvas.text(x, self._top + _AGENT[1] + 10, text, 13, MUTED, "ma")

    def _caller(self) -> None:
        said = self._said
        self._back(_CALLER, said.from_s, said.until_s, CALLER_PALE)
        if self._recording.sent is not None:
            self._track(_CALLER, self._recording.sent, SENT)
        self._track(_CALLER, self._recording.caller, CALLER)
        self._name(_CALLER, "caller", CALLER)

    def _agent(self, dropped: int | None) -> None:
        recording = self._recording
        for span in recording.spans:
            self._back(_AGENT, span.start / RATE_HZ, span.stop / RATE_HZ, AGENT_PALE)
        if dropped is not None:
            self._dropped(dropped)
        for held in self._holds:
            self._back(_AGENT, held.from_s, held.until_s, HELD_PALE)
        self._track(_AGENT, recording.agent, AGENT)
        self._name(_AGENT, "agent", AGENT)

    def _dropped(self, utterance: int) -> None:
        start, rest = self._recording.dropped(utterance)
        left, right = self._x(start / RATE_HZ), self._x((start + len(rest)) / RATE_HZ)
        box = (left, self._top + _AGENT[0], right, self._top + _AGENT[1])
        self._canvas.bar(box, DROPPED_PALE)
        self._canvas.hatch(box, GRID, 10)
        self._wave(_AGENT, rest, left, right, DROPPED)

    def _track(self, lane: tuple[int, int], track: array[int], fill: str) -> None:
        start, stop = round(self._from_s * RATE_HZ), round(self._until_s * RATE_HZ)
        self._wave(lane, track[start:stop], LEFT, LEFT + WIDTH, fill)

    def _wave(
        self,
        lane: tuple[int, int],
        values: array[int],
        left: float,
        right: float,
        fill: str,
    ) -> None:
        box = (left, self._top + lane[0] + 4, right, self._top + lane[1] - 4)
        self._canvas.wave(values, box, RATE_HZ, self._px_per_s, self._peaks[lane], fill)

    def _back(self, lane: tuple[float, float], from_s: float, until_s: float, fill: str) -> None:
        box = (self._x(from_s), self._top + lane[0], self._x(until_s), self._top + lane[1])
        self._canvas.bar(box, fill, 4)

    def _name(self, lane: tuple[float, float], name: str, fill: str) -> None:
        middle = self._top + sum(lane) / 2
        self._canvas.line((LEFT, middle), (LEFT + WIDTH, middle), fill)
        self._canvas.text(LEFT - 12, middle, name, 16, fill, "rm")

    def _measure(self) -> None:
        measured, fill = self._measured, self._measured.fill
        first, last = self._x(measured.from_s), self._x(measured.until_s)
        top, bottom = self._top + _CALLER[0] - 6, self._top + _AGENT[1] + 6
        y = self._top + (_CALLER[1] + _AGENT[0]) / 2
        self._canvas.dashes(first, top, bottom, fill)
        if last > first:
            self._canvas.line((last, top), (last, bottom), fill, 2)
            self._canvas.span_arrow(first, last, y, fill)
        if last + 10 + self._canvas.text_width(measured.text, 15) <= LEFT + WIDTH:
            self._canvas.text(last + 10, y, measured.text, 15, fill, "lm")
        else:
            width = self._canvas.text_width(measured.text, 15)
            self._canvas.bar((last - 14 - width, y - 22, last - 6, y - 3), "white")
            self._canvas.text(last - 10, y - 6, measured.text, 15, fill, "rs")


def _words(
    canvas: Canvas, left: float, y: float, right: float, blocks: Sequence[tuple[str, str, str]]
) -> float:
    """Write texts under their titles, and return the position of the next one."""
    for title, text, fill in blocks:
        canvas.text(left, y, title, 13, MUTED)
        lines = canvas.lines(text, 16, right - left, 4)
        y = canvas.write_lines(left, y + 20, lines, 16, fill) + 12
    return y
