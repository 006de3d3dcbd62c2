"""Tests of drawing."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest
from PIL import Image

from bargein.bridge.rehearsal._canvas import SCALE, Canvas

WHITE = (255, 255, 255)
RED = (255, 0, 0)


def test_a_bar_fills_its_box() -> None:
    """A bar has its colour inside and leaves what is outside."""
    canvas = Canvas(100, 50)
    canvas.bar((10, 10, 20, 40), "#ff0000")
    assert canvas.size == (100 * SCALE, 50 * SCALE)
    assert canvas.color_at(15, 25) == RED
    assert canvas.color_at(9, 25) == canvas.color_at(20, 25) == WHITE


def test_an_empty_bar_is_not_drawn() -> None:
    """A bar without width is left out; turns and states may have none."""
    canvas = Canvas(20, 20)
    canvas.bar((10, 0, 10, 20), "#ff0000")
    canvas.bar((10, 0, 5, 20), "#ff0000")
    assert canvas.color_at(10, 10) == WHITE


def test_a_wave_is_as_high_as_its_sound() -> None:
    """Loud stretches reach the edge of the box, silent ones are a line in the middle."""
    canvas = Canvas(100, 40)
    values = array("h", [1_000, -1_000] * 500 + [0] * 1_000)
    canvas.wave(values, (0, 0, 100, 40), 1_000, 50, 1_000, "#ff0000")
    assert canvas.color_at(25, 2) == canvas.color_at(25, 38) == RED
    assert canvas.color_at(75, 2) == canvas.color_at(75, 38) == WHITE
    assert canvas.color_at(75, 20) == RED


def test_a_wave_ends_with_its_box() -> None:
    """Audio that is longer than the box is left out."""
    canvas = Canvas(100, 40)
    canvas.wave(array("h", [900, -900] * 2_000), (0, 0, 50, 40), 1_000, 50, 1_000, "#ff0000")
    assert canvas.color_at(49, 10) == RED
    assert canvas.color_at(51, 10) == WHITE


def test_hatching_stays_in_its_box() -> None:
    """The slanting lines end at the edges of the box."""
    canvas = Canvas(100, 40)
    canvas.hatch((20, 10, 80, 30), "#ff0000", 5)
    inside = {canvas.color_at(x, y) for x in range(20, 80) for y in range(10, 30)}
    outside = {canvas.color_at(x, y) for x in (5, 15, 85, 95) for y in range(40)}
    assert inside == {WHITE, RED}
    assert outside == {WHITE}


def test_texts_fit_their_width() -> None:
    """A text is broken between words, and ends in an ellipsis where it goes on."""
    canvas = Canvas(400, 100)
    text = "That will be four dollars and fifty cents"
    lines = canvas.lines(text, 14, 110, 2)
    assert len(lines) == 2
    assert lines[0] == "That will be four"
    assert lines[1].endswith("…")
    assert all(canvas.text_width(line, 14) <= 110 for line in lines)
    assert canvas.lines(text, 14, 1_000, 2) == [text]


def test_text_is_written() -> None:
    """Writing leaves ink at its place, and lines come below each other."""
    canvas = Canvas(200, 100)
    end = canvas.write_lines(10, 10, ["MMM", "MMM"], 20, "#ff0000")
    assert end == pytest.approx(10 + 2 * 26)
    for top in (10, 36):
        ink = {canvas.color_at(x, y) for x in range(10, 60) for y in range(top, top + 24)}
        assert RED in ink


def test_any_script_can_be_written(tmp_path: Path) -> None:
    """Text in other alphabets is written with what fonts there are, and never fails."""
    text = "Ein Kännchen Kaffee, 珈琲, кофе, ☕"
    canvas = Canvas(400, 60, [text])
    canvas.text(10, 10, text, 16)
    canvas.save(tmp_path / "x.png")
    with Image.open(tmp_path / "x.png") as image:
        assert image.size == (400 * SCALE, 60 * SCALE)


def test_without_a_system_font_accents_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no font for a text, the letters are written without their accents."""
    monkeypatch.setattr("bargein.bridge.rehearsal._canvas._SYSTEM_FONTS", ())
    canvas = Canvas(200, 50, ["café"])
    assert canvas.text_width("café", 14) == canvas.text_width("cafe", 14)


def test_arrows_and_dashes_are_drawn() -> None:
    """A measure reaches from end to end; a dashed line has gaps."""
    canvas = Canvas(100, 100)
    canvas.span_arrow(20, 80, 50, "#ff0000")
    assert canvas.color_at(50, 50) == canvas.color_at(20, 46) == RED
    canvas.dashes(90, 0, 100, "#ff0000")
    assert {canvas.color_at(90, y) for y in range(100)} == {WHITE, RED}
