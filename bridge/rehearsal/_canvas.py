"""Drawing in logical pixels, at twice that resolution: text, bars, waveforms and hatching."""

from __future__ import annotations

import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, final

from ._missing_library import need

if TYPE_CHECKING:
    from PIL import ImageFont

SCALE = 2
"""Pixels of the file for each logical pixel, so that it is crisp on dense screens."""

Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right, bottom, in logical pixels."""

Anchor: TypeAlias = Literal["la", "ma", "ra", "lm", "mm", "rm", "ls", "ms", "rs"]
"""How a text is aligned to its point; Pillow's anchors."""

LINE_HEIGHT = 1.3
"""The distance of two lines of text, in heights of the font."""

INK = "#1f2937"
MUTED = "#6b7280"

_BUNDLED = frozenset("“”…·")
"""The characters beyond ASCII in our texts that Pillow's own font has."""

_SYSTEM_FONTS = (
    "DejaVuSans.ttf",
    "LiberationSans-Regular.ttf",
    "NotoSans-Regular.ttf",
    "Arial.ttf",
    "segoeui.ttf",
    "Helvetica.ttc",
)


@final
class Canvas:
    """A white picture.

    Args:
        width: In logical pixels.
        height: In logical pixels.
        texts: All foreign texts that will be written; they decide the font.
    """

    def __init__(self, width: float, height: float, texts: Iterable[str] = ()) -> None:
        size = (round(width * SCALE), round(height * SCALE))
        self._image = need("PIL.Image", "the picture of a rehearsal").new("RGB", size, "white")
        self._draw = need("PIL.ImageDraw", "the picture of a rehearsal").Draw(self._image)
        self._font_file = _font_file("".join(texts))

    def save(self, path: Path) -> None:
        """Write it as a PNG file."""
        self._image.save(path)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the file, in its own pixels."""
        width, height = self._image.size
        return width, height

    # --- shapes ---------------------------------------------------------------------------------

    def bar(self, box: Box, fill: str, radius: float = 0) -> None:
        """Fill a box; nothing if it is narrower than half a pixel."""
        left, top, right, bottom = (round(value * SCALE) for value in box)
        if right - left >= 1 and bottom - top >= 1:
            inner = (left, top, right - 1, bottom - 1)
            self._draw.rounded_rectangle(inner, radius * SCALE, fill=fill)

    def line(
        self, start: tuple[float, float], end: tuple[float, float], fill: str, width: float = 1
    ) -> None:
        """Draw a straight line."""
        points = [round(value * SCALE) for value in (*start, *end)]
        self._draw.line(points, fill=fill, width=round(width * SCALE))

    def dashes(self, x: float, top: float, bottom: float, fill: str) -> None:
        """Draw a dashed vertical line."""
        y = top
        while y < bottom:
            self.line((x, y), (x, min(y + 4, bottom)), fill)
            y += 8

    def span_arrow(self, left: float, right: float, y: float, fill: str) -> None:
        """Draw a measure: a horizontal line between two upright ends."""
        self.line((left, y), (right, y), fill, 1.5)
        for x in (left, right):
            self.line((x, y - 5), (x, y + 5), fill, 1.5)

    def hatch(self, box: Box, fill: str, every: float = 7) -> None:
        """Draw slanting lines across a box."""
        left, top, right, bottom = box
        x = left - (bottom - top)
        while x < right:
            rise_from, rise_to = max(left, x), min(right, x + bottom - top)
            low, high = bottom - (rise_from - x), bottom - (rise_to - x)
            self.line((rise_from, low), (rise_to, high), fill)
            x += every

    def wave(
        self, values: array[int], box: Box, rate_hz: int, px_per_s: float, peak: int, fill: str
    ) -> None:
        """Draw the envelope of audio in a box, from its left edge.

        Args:
            values: Samples.
            box: Where.
            rate_hz: Sample rate.
            px_per_s: Logical pixels for each second.
            peak: The sample that reaches the edge of the box.
            fill: Colour.
        """
        left, top, right, bottom = (value * SCALE for value in box)
        middle, half = (top + bottom) / 2, (bottom - top) / 2
        per_column = rate_hz / (px_per_s * SCALE)
        for column in range(min(round(right - left), int(len(values) / per_column) + 1)):
            start = int(column * per_column)
            # One more sample on each side, so that the strokes of neighbouring columns meet.
            part = values[max(0, start - 1) : int((column + 1) * per_column) + 1]
            if part:
                high, low = max(part) / peak * half, min(part) / peak * half
                x = round(left) + column
                self._draw.line((x, middle - high, x, middle - low), fill=fill)

    # --- text -----------------------------------------------------------------------------------

    def text(
        self, x: float, y: float, text: str, size: float, fill: str = INK, anchor: Anchor = "la"
    ) -> None:
        """Write one line."""
        point = (x * SCALE, y * SCALE)
        self._draw.text(point, self._shown(text), fill, self._font(size), anchor=anchor)

    def text_width(self, text: str, size: float) -> float:
        """Return how wide a line is."""
        return float(self._font(size).getlength(self._shown(text))) / SCALE

    def write_lines(
        self, x: float, y: float, lines: Iterable[str], size: float, fill: str = INK
    ) -> float:
        """Write lines below each other, and return the position of the next one."""
        for line in lines:
            self.text(x, y, line, size, fill)
            y += size * LINE_HEIGHT
        return y

    def lines(self, text: str, size: float, width: float, limit: int) -> list[str]:
        """Return a text as lines that fit a width, with an ellipsis if it is longer.

        Args:
            text: Any text.
            size: The size of the font.
            width: In logical pixels.
            limit: The maximum number of lines.
        """
        lines, words = [""], text.split()
        for index, word in enumerate(words):
            longer = f"{lines[-1]} {word}".strip()
            if self.text_width(longer, size) <= width or not lines[-1]:
                lines[-1] = longer
            elif len(lines) < limit:
                lines.append(word)
            else:
                lines[-1] = " ".join([lines[-1], *words[index:]])
                break
        return [self._with_ellipsis(line, size, width) for line in lines]

    def _with_ellipsis(self, text: str, size: float, width: float) -> str:
        if self.text_width(text, size) <= width:
            return text
        lengths = range(len(text) + 1)
        longest = bisect_right(
            lengths, width, key=lambda length: self.text_width(f"{text[:length].rstrip()}…", size)
        )
        return f"{text[: max(0, longest - 1)].rstrip()}…"

    def _font(self, size: float) -> ImageFont.FreeTypeFont:
        return _load_font(self._font_file, round(size * SCALE))

    def _shown(self, text: str) -> str:
        return _simplified(text) if self._font_file is None else text


def _font_file(text: str) -> str | None:
    """Return a font of the system if the text needs one and there is one; otherwise ``None``."""
    if all(character.isascii() or character in _BUNDLED for character in text):
        return None
    fonts = need("PIL.ImageFont", "the picture of a rehearsal")
    for name in _SYSTEM_FONTS:
        try:
            fonts.truetype(name, 10)
        except OSError:
            continue  # it is not on this machine
        return name
    return None


@cache
def _load_font(name: str | None, size: int) -> ImageFont.FreeTypeFont:
    fonts = need("PIL.ImageFont", "the picture of a rehearsal")
    font: ImageFont.FreeTypeFont = (
        fonts.load_default(size) if name is None else fonts.truetype(name, size)
    )
    return font


def _simplified(text: str) -> str:
    """Return a text in the characters of Pillow's own font, without accents that it lacks."""
    decomposed = unicodedata.normalize("NFKD", text)
    kept = (c for c in decomposed if not unicodedata.combining(c))
    return "".join(c if c.isascii() or c in _BUNDLED else "?" for c in kept)
