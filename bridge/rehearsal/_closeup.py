"""One cut enlarged: the caller's first sound, the agent's last, and what was never heard."""

from __future__ import annotations

from array import array
from typing import Final

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
)
from ._recording import RATE_HZ, Recording
from ._result import Cut
from ._sound import loudest

CLOSEUP_HEIGHT: Final = 330
BEFORE_S, AFTER_S = 0.5, 1.0
LEFT, WIDTH = 92, 1000
"""Where the enlargement lies; the words stand right of it."""

_CALLER = (62, 142)
_AGENT = (182, 262)


def draw_closeup(canvas: Canvas, top: float, width: float, cut: Cut, recording: Recording) -> None:
    """Draw a cut that was heard, enlarged.

    Args:
        canvas: On what.
        top: Where it begins.
        width: Of the whole picture.
        cut: A cut with a latency.
        recording: The call.
    """
    assert cut.latency_s is not None
    lanes = _Lanes(canvas, top, cut, recording)
    lanes.draw()
    _words(canvas, top, LEFT + WIDTH + 48, width - 36, cut)


class _Lanes:
    def __init__(self, canvas: Canvas, top: float, cut: Cut, recording: Recording) -> None:
        self._canvas = canvas
        self._top = top
        self._cut = cut
        self._recording = recording
        latency_s = cut.latency_s or 0.0
        self._from_s = max(0.0, cut.said.from_s - BEFORE_S)
        # An agent that was not cut speaks on for long: the end of its speech belongs to the story.
        self._until_s = cut.said.from_s + max(AFTER_S, latency_s + 0.3)
        self._px_per_s = WIDTH / (self._until_s - self._from_s)

    def draw(self) -> None:
        title = f"The cut, enlarged: “{self._cut.said.line.text}”"
        self._canvas.text(LEFT, self._top + 8, title, 18)
        self._grid()
        self._caller()
        self._agent()
        self._measure()

    def _x(self, at_s: float) -> float:
        return LEFT + (min(max(at_s, self._from_s), self._until_s) - self._from_s) * self._px_per_s

    def _grid(self) -> None:
        step_ms = next(ms for ms in (100, 200, 500, 1000, 5000) if ms * self._px_per_s / 1000 >= 50)
        zero_s = self._cut.said.from_s
        first = -int((zero_s - self._from_s) * 1000 / step_ms)
        for number in range(first, int((self._until_s - zero_s) * 1000 / step_ms) + 1):
            x = self._x(zero_s + number * step_ms / 1000)
            self._canvas.line((x, self._top + _CALLER[0]), (x, self._top + _AGENT[1] + 6), GRID)
            text = f"{number * step_ms} ms"
            self._canvas.text(x, self._top + _AGENT[1] + 10, text, 13, MUTED, "ma")

    def _caller(self) -> None:
        said = self._cut.said
        self._back(_CALLER, said.from_s, said.until_s, CALLER_PALE)
        self._track(_CALLER, self._recording.caller, CALLER)
        self._name(_CALLER, "caller", CALLER)

    def _agent(self) -> None:
        recording, utterance = self._recording, self._cut.utterance
        for span in recording.spans:
            self._back(_AGENT, span.start / RATE_HZ, span.stop / RATE_HZ, AGENT_PALE)
        if self._cut.is_told and utterance is not None:
            self._dropped(utterance)
        self._track(_AGENT, recording.agent, AGENT)
        self._name(_AGENT, "agent", AGENT)

    def _dropped(self, utterance: int) -> None:
        start, rest = self._recording.dropped(utterance)
        left, right = self._x(start / RATE_HZ), self._x((start + len(rest)) / RATE_HZ)
        box = (left, self._top + _AGENT[0], right, self._top + _AGENT[1])
        self._canvas.bar(box, DROPPED_PALE)
        self._canvas.hatch(box, GRID, 10)
        self._wave(_AGENT, rest, left, right, DROPPED)

    def _track(self, lane: tuple[float, float], track: array[int], fill: str) -> None:
        start, stop = round(self._from_s * RATE_HZ), round(self._until_s * RATE_HZ)
        self._wave(lane, track[start:stop], LEFT, LEFT + WIDTH, fill)

    def _wave(
        self,
        lane: tuple[float, float],
        values: array[int],
        left: float,
        right: float,
        fill: str,
    ) -> None:
        track = self._recording.caller if lane is _CALLER else self._recording.agent
        box = (left, self._top + lane[0] + 4, right, self._top + lane[1] - 4)
        self._canvas.wave(values, box, RATE_HZ, self._px_per_s, loudest(track), fill)

    def _back(self, lane: tuple[float, float], from_s: float, until_s: float, fill: str) -> None:
        box = (self._x(from_s), self._top + lane[0], self._x(until_s), self._top + lane[1])
        self._canvas.bar(box, fill, 4)

    def _name(self, lane: tuple[float, float], name: str, fill: str) -> None:
        middle = self._top + sum(lane) / 2
        self._canvas.line((LEFT, middle), (LEFT + WIDTH, middle), fill)
        self._canvas.text(LEFT - 12, middle, name, 16, fill, "rm")

    def _measure(self) -> None:
        cut = self._cut
        assert cut.latency_s is not None
        assert cut.silent_at_s is not None
        first, last = self._x(cut.said.from_s), self._x(cut.silent_at_s)
        top, bottom = self._top + _CALLER[0] - 6, self._top + _AGENT[1] + 6
        self._canvas.dashes(first, top, bottom, CUT)
        self._canvas.line((last, top), (last, bottom), CUT, 2)
        y = self._top + (_CALLER[1] + _AGENT[0]) / 2
        self._canvas.span_arrow(first, last, y, CUT)
        text = f"{cut.latency_s * 1000:.0f} ms from the caller's first sound to the agent's last"
        if last + 10 + self._canvas.text_width(text, 15) <= LEFT + WIDTH:
            self._canvas.text(last + 10, y, text, 15, CUT, "lm")
        else:
            self._canvas.text(last - 10, y - 6, text, 15, CUT, "rs")


def _words(canvas: Canvas, top: float, left: float, right: float, cut: Cut) -> None:
    width = right - left
    y = top + 62
    for title, text, fill in (
        ("heard", cut.heard.strip() or "nothing", AGENT),
        ("never heard", cut.unheard.strip() or "nothing", DROPPED_TEXT),
    ):
        canvas.text(left, y, title, 13, MUTED)
        y = canvas.write_lines(left, y + 20, canvas.lines(text, 16, width, 4), 16, fill) + 12
    canvas.text(left, y, f"{cut.dropped_s:.2f} s of audio dropped", 14, INK)
    late = f"{cut.late_s * 1000:.0f} ms of it played later"
    canvas.text(left, y + 22, late, 14, INK if cut.late_s == 0 else CUT)
