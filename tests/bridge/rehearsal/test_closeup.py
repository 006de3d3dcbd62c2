"""Tests of the enlargement of a cut."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from PIL import ImageColor

from bargein.bridge.rehearsal._canvas import Canvas
from bargein.bridge.rehearsal._closeup import (
    AFTER_S,
    BEFORE_S,
    CLOSEUP_HEIGHT,
    LEFT,
    WIDTH,
    draw_aside,
    draw_closeup,
)
from bargein.bridge.rehearsal._colors import AGENT, CALLER, CUT, DROPPED, HELD, HELD_PALE
from bargein.bridge.rehearsal._recording import record
from bargein.bridge.rehearsal._sound import to_pcm
from bargein.client import Heard
from bargein.rehearsal import Aside, Cut, Decision, Held, Line, Recording, Said, agent_has_spoken

SAID = Said(Line("No.", agent_has_spoken(1), interrupts=True), 4.0, 4.6)
MADE = Cut(SAID, utterance=1, silent_at_s=4.2, latency_s=0.2, is_told=True, heard="a", unheard="b")
CALLER_EDGE, AGENT_EDGE = 70, 190
"""Heights near the upper edges of the two lanes, where only loud sound reaches."""


def recording(tone: Callable[..., Any], heard_s: float = 1.2) -> Recording:
    """Return a call in which the caller speaks from 4 s to 4.6 s, the agent from 3 s on."""
    spoke = array("h", bytes(2 * 64_000)) + tone(0.6, rate_hz=16_000)
    return record(
        start_s=0.0,
        end_s=8.0,
        spoke=to_pcm(spoke),
        spoke_at_s=0.0,
        heard=[Heard(3.0, 1, bytearray(to_pcm(tone(heard_s))))],
        generated={1: tone(6.0)},
    )


def row(canvas: Canvas, y: float, from_ms: float, until_ms: float, span_s: float) -> set[Any]:
    """Return the colours at a height between two moments, counted from the caller's first sound."""
    px_per_ms = WIDTH / (BEFORE_S + span_s) / 1000
    first, last = (LEFT + (BEFORE_S * 1000 + ms) * px_per_ms for ms in (from_ms, until_ms))
    return {canvas.color_at(x / 2, y) for x in range(round(first * 2), round(last * 2))}


def drawn(cut: Cut, made: Recording) -> Canvas:
    """Return the close-up on a page of its own."""
    canvas = Canvas(1600, CLOSEUP_HEIGHT)
    draw_closeup(canvas, 0, 1600, cut, made)
    return canvas


def test_the_cut_lies_between_first_and_last_sound(tone: Callable[..., Any]) -> None:
    """The caller's sound begins at 0 ms, the agent's ends at the cut, the rest is pale."""
    canvas = drawn(MADE, recording(tone))
    caller, agent = ImageColor.getrgb(CALLER), ImageColor.getrgb(AGENT)
    dropped, cut = ImageColor.getrgb(DROPPED), ImageColor.getrgb(CUT)
    assert caller not in row(canvas, CALLER_EDGE, -400, -5, AFTER_S)
    assert caller in row(canvas, CALLER_EDGE, 5, 500, AFTER_S)
    assert agent in row(canvas, AGENT_EDGE, -400, -5, AFTER_S)
    assert agent not in row(canvas, AGENT_EDGE, 210, 900, AFTER_S)
    assert dropped in row(canvas, AGENT_EDGE, 210, 900, AFTER_S)
    assert cut in row(canvas, AGENT_EDGE, 195, 205, AFTER_S)


def test_an_agent_that_spoke_on_is_shown_to_its_end(tone: Callable[..., Any]) -> None:
    """Without a cut the close-up reaches to the end of the speech, and nothing was dropped."""
    ignored = replace(MADE, is_told=False, latency_s=2.0, silent_at_s=6.0)
    canvas = drawn(ignored, recording(tone, heard_s=3.0))
    agent, dropped = ImageColor.getrgb(AGENT), ImageColor.getrgb(DROPPED)
    assert agent in row(canvas, AGENT_EDGE, 1_500, 1_990, 2.3)
    assert dropped not in row(canvas, AGENT_EDGE, -400, 2_290, 2.3)
    beside = {canvas.color_at(x / 2, y) for x in range(2_190, 2_270) for y in range(145, 180)}
    assert beside == {(255, 255, 255)}, "what was measured is written inside of the close-up"


MHM = Aside(
    Said(Line("mhm", agent_has_spoken(1), longest_gap_s=0.3), 4.0, 4.6),
    utterance=1,
    gap_s=0.2,
    gap_from_s=4.1,
    decisions=(Decision(4.3, "barge_in", "acknowledgement", "hint", {"probability": 0.9}),),
)


def drawn_aside(aside: Aside, made: Recording) -> Canvas:
    """Return the close-up of a sound on a page of its own; the agent is held from 4.1 s on."""
    canvas = Canvas(1600, CLOSEUP_HEIGHT)
    draw_aside(canvas, 0, 1600, aside, made, [Held(4.1, 4.3)])
    return canvas


def test_a_gap_is_measured_between_its_ends(tone: Callable[..., Any]) -> None:
    """The hold is coloured, and two lines stand at the ends of the gap."""
    canvas = drawn_aside(MHM, recording(tone))
    middle = 162
    assert ImageColor.getrgb(HELD_PALE) in row(canvas, AGENT_EDGE, 120, 280, AFTER_S)
    assert ImageColor.getrgb(HELD_PALE) not in row(canvas, AGENT_EDGE, 320, 900, AFTER_S)
    assert row(canvas, middle, 110, 290, AFTER_S) == {ImageColor.getrgb(HELD)}
    assert ImageColor.getrgb(HELD) not in row(canvas, middle, -200, 90, AFTER_S)


def test_a_sound_that_cut_the_agent_is_in_the_colour_of_a_cut(tone: Callable[..., Any]) -> None:
    """What was meant to leave the agent speaking and did not is drawn as a cut."""
    cut = replace(MHM, is_cut=True, gap_s=0.0, gap_from_s=None)
    canvas = drawn_aside(cut, recording(tone))
    lane = {canvas.color_at(LEFT + WIDTH * 0.34, y) for y in range(56, 266)}
    text = {canvas.color_at(x, y) for x in range(LEFT + 300, LEFT + 700) for y in range(150, 175)}
    assert ImageColor.getrgb(CUT) in lane | text
    assert ImageColor.getrgb(HELD) not in text
    assert ImageColor.getrgb(DROPPED) in row(canvas, AGENT_EDGE + 30, 300, 900, AFTER_S)
