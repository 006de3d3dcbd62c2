"""Writes out what engines misread in English: amounts, dates and telephone numbers.

espeak-ng, which piper spells with, reads "$5.99" as "dollar five point nine nine", "2026-11-26" as
"two thousand twenty six dash eleven dash twenty six", and "555-0123" as "five hundred fifty five
dash". It reads plain numbers, decimals, times, ordinals and codes such as "A1B2" well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ._markup import SpokenPart
from ._spoken_form import PlainWords

_UNITS = {"$": ("dollar", "cent"), "€": ("euro", "cent"), "£": ("pound", "penny")}
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
_MISREAD = re.compile(
    r"(?<![\w.,/$€£-])(?:"
    r"(?P<sign>[$€£])(?P<whole>\d{1,3}(?:,\d{3})+|\d{1,12})(?:\.(?P<part>\d{1,2}))?"
    r"(?:[ ](?P<scale>thousand|million|billion|trillion)\b)?(?![\w,.]*\d)"
    r"|(?P<year>\d{4})-(?P<month>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12]\d|3[01])(?![\w/-])"
    r"|(?P<phone>\+\d[\d ()-]{5,18}\d|\(\d{3}\)[ ]?\d{3}[ -]\d{4}"
    r"|(?:1-)?(?:\d{3}-)?\d{3}-\d{4})(?![\w-])"
    r")"
)
_UNFINISHED = re.compile(
    r"(?:(?<=\s)|^)(?:[$€£](?:\d[\d,.]*)?(?:[ ][a-z]{0,8})?|\d[\d-]*|\+[\d ()-]*|\(\d*\)?[\d -]*)\Z"
)
_LONGEST_NUMBER = 40


class EnglishNumbers(PlainWords):
    """`PlainWords`, and amounts, dates and telephone numbers in English words.

    For voices that misread them; the local engines have it where they speak English.
    """

    def __init__(self) -> None:
        """Start an utterance."""
        super().__init__()
        self._number = ""  # the end of the text, which may be a part of a number

    def feed(self, text: str) -> list[SpokenPart]:
        """Return the parts that this text completes; see `SpokenForm.feed`."""
        return [part for each in super().feed(text) for part in self._write_out(each)]

    def flush(self) -> list[SpokenPart]:
        """Return what was delayed; see `SpokenForm.flush`."""
        parts = [part for each in super().flush() for part in self._write_out(each)]
        rest, self._number = self._number, ""
        return [*parts, *_written_out(rest)]

    def _write_out(self, part: SpokenPart) -> Iterator[SpokenPart]:
        if part.written != part.spoken:
            rest, self._number = self._number, ""
            yield from _written_out(rest)
            yield part
            return
        text, self._number = self._number + part.written, ""
        unfinished = _UNFINISHED.search(text, max(0, len(text) - _LONGEST_NUMBER))
        if unfinished is not None:
            text, self._number = text[: unfinished.start()], unfinished.group()
        yield from _written_out(text)


def _written_out(text: str) -> Iterator[SpokenPart]:
    at = 0
    for found in _MISREAD.finditer(text):
        if found.start() > at:
            yield SpokenPart(text[at : found.start()], text[at : found.start()])
        yield SpokenPart(found.group(), _words(found))
        at = found.end()
    if at < len(text):
        yield SpokenPart(text[at:], text[at:])


def _words(found: re.Match[str]) -> str:
    if found["phone"]:
        groups = re.findall(r"\d+", found["phone"])
        plus = "plus " if found["phone"].startswith("+") else ""
        return plus + ", ".join(" ".join(group) for group in groups)
    if found["year"]:
        return f"{_MONTHS[int(found['month']) - 1]} {int(found['day'])}, {found['year']}"
    unit, small = _UNITS[found["sign"]]
    whole, part, scale = found["whole"].replace(",", ""), found["part"], found["scale"]
    if scale or len(part or "00") == 1:
        number = whole + (f".{part}" if part else "")
        return f"{number} {scale} {unit}s" if scale else f"{number} {unit}s"
    cents = int(part or 0)
    said = [f"{whole} {_plural(unit, int(whole))}"] if int(whole) or not cents else []
    said += [f"{cents} {_plural(small, cents)}"] if cents else []
    return " and ".join(said)


def _plural(unit: str, count: int) -> str:
    if count == 1:
        return unit
    return "pence" if unit == "penny" else f"{unit}s"
