"""Writes out what engines misread: amounts, dates and telephone numbers, by language.

espeak-ng, which piper spells with, reads "$5.99" as "dollar five point nine nine", "2026-11-26" as
"two thousand twenty six dash eleven dash twenty six", and "555-0123" as "five hundred fifty five
dash".  In German, "26.11.2026" is "twenty-six point eleven point …" and "3. Mai" ends a sentence;
in other languages, "12,50 €" is "twelve comma fifty euro".  It reads plain numbers, decimals,
times, ordinals and codes such as "A1B2" well.
"""

# ruff: noqa: RUF001 (this module handles apostrophes and dashes of other languages)

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, partial
from typing import TYPE_CHECKING

from bargein.bridge.languages import language, tags, with_some

from ._markup import SpokenPart
from ._spoken_form import NewSpokenForm, PlainWords

if TYPE_CHECKING:
    from bargein.bridge.languages import NumberForms

_LONGEST_NUMBER = 60
"""The longest end of a text that waits to be completed, in characters."""
_LONGEST_WORD = 12


class NumbersInWords(PlainWords):
    """`PlainWords`, and amounts, dates and telephone numbers in words of a language.

    For voices that misread them; the local engines have it for the language of their voice.
    """

    def __init__(self, language: str = "en") -> None:
        """Start an utterance.

        Args:
            language: Its tag: ``en``, ``de``, ``fr``, ``es``, ``it``, ``pt`` or ``nl``.

        Raises:
            ValueError: Nothing is known of the language.
        """
        super().__init__()
        self._forms = _forms(language)
        self._misread, self._unfinished = _patterns(language)
        self._number = ""  # the end of the text, which may be a part of a number
        self._before = ""  # the word before it

    def feed(self, text: str) -> list[SpokenPart]:
        """Return the parts that this text completes; see `SpokenForm.feed`."""
        return [part for each in super().feed(text) for part in self._write_out(each)]

    def flush(self) -> list[SpokenPart]:
        """Return what was delayed; see `SpokenForm.flush`."""
        parts = [part for each in super().flush() for part in self._write_out(each)]
        rest, self._number = self._number, ""
        return [*parts, *self._written_out(rest)]

    def _write_out(self, part: SpokenPart) -> Iterator[SpokenPart]:
        if part.written != part.spoken:
            rest, self._number = self._number, ""
            yield from self._written_out(rest)
            yield part
            return
        text, self._number = self._number + part.written, ""
        unfinished = self._unfinished.search(text, max(0, len(text) - _LONGEST_NUMBER))
        if unfinished is not None:
            text, self._number = text[: unfinished.start()], unfinished.group()
        yield from self._written_out(text)

    def _written_out(self, text: str) -> Iterator[SpokenPart]:
        at = 0
        for found in self._misread.finditer(text):
            if found.start() > at:
                yield SpokenPart(text[at : found.start()], text[at : found.start()])
            before = (self._before + text[: found.start()]).rsplit(maxsplit=1)
            yield SpokenPart(found.group(), self._words(found, before[-1] if before else ""))
            at = found.end()
        if at < len(text):
            yield SpokenPart(text[at:], text[at:])
        self._before = (self._before + text)[-_LONGEST_WORD:]

    def _words(self, found: re.Match[str], before: str) -> str:
        forms = self._forms
        if found["phone"]:
            return self._digits(found["phone"])
        if found["day"] or found["d"] or found["named_day"]:
            day = int(found["day"] or found["d"] or found["named_day"])
            said = _day(forms, day, before)
            if found["named_day"]:
                return f"{said} {found['named_month']}"
            month = forms.months[int(found["month"] or found["m"]) - 1]
            return forms.date.format(day=said, month=month, year=found["year"] or found["y"])
        return self._amount(found)

    def _digits(self, number: str) -> str:
        """Return a telephone number digit by digit; pairs as they are, where people say them so."""
        plus = f"{self._forms.plus} " if number.startswith("+") else ""
        longest = 2 if self._forms.pairs else 0
        groups = re.findall(r"\d+", number)
        return plus + ", ".join(
            group if len(group) <= longest else " ".join(group) for group in groups
        )

    def _amount(self, found: re.Match[str]) -> str:
        forms = self._forms
        number = found["number"] or found["number_first"]
        part = found["part"] or found["part_first"] or ""
        scale = found["scale"] or found["scale_first"]
        currency = forms.currencies[found["sign"] or found["sign_behind"]]
        whole = re.sub(r"\D", "", number)
        if scale or len(part) == 1:
            said = whole + (f"{forms.decimal}{part}" if part else "")
            many = currency.many
            if not scale:
                return f"{said} {many}"
            of = forms.of.replace("'", "e ") if many[0] not in "aeiou" else forms.of
            return f"{said} {scale}{of}{many}"
        units, hundredths = int(whole), int(part or 0)
        parts = []
        if units or not hundredths:
            parts.append(currency.one if units == 1 else f"{whole} {currency.many}")
        if hundredths == 1:
            parts.append(currency.one_part)
        elif hundredths:
            parts.append(f"{hundredths} {currency.many_parts}")
        return forms.joint.join(parts)


def numbers_in_words(voice: str) -> NewSpokenForm:
    """Return what makes the spoken form for an engine that misreads numbers.

    Args:
        voice: The name of a voice, which begins with its language: "de_DE-thorsten-high", "en-us".

    Returns:
        `NumbersInWords` of the language, or `PlainWords` where nothing is known of it.
    """
    tag = re.split(r"[^a-z]", voice.lower(), maxsplit=1)[0]
    is_known = tag in tags() and language(tag).numbers is not None
    return partial(NumbersInWords, tag) if is_known else PlainWords


def _forms(tag: str) -> NumberForms:
    forms = language(tag).numbers if tag in tags() else None
    if forms is None:
        known = [*with_some("numbers")]
        raise ValueError(f"NumbersInWords(language=) is one of {known}: {tag!r}")
    return forms


def _day(forms: NumberForms, day: int, before: str) -> str:
    if forms.ordinals:
        ending = forms.ordinal_endings.get(before.lower(), forms.ordinal_ending)
        return forms.ordinals[day - 1] + ending
    return forms.first_day if day == 1 else str(day)


@cache
def _patterns(tag: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what finds all that is misread in a text, and its end that may be a part of it."""
    forms = _forms(tag)
    signs = sorted(forms.currencies, key=len, reverse=True)
    either = "|".join(map(re.escape, signs))
    number = rf"\d{{1,3}}(?:[{forms.thousands}]\d{{3}})+|\d{{1,12}}"
    part = rf"(?:[{forms.decimal_signs}](?P<part_first>\d{{1,2}}))"
    dashes = "|,[-–—]{1,2}"  # as in "12,- €"
    scale = rf"(?:[ ](?P<scale_first>{forms.scales})\b)"
    amounts = [
        rf"(?P<sign>{either})[ \u00a0]?(?P<number_first>{number}){part}?{scale}?(?![\w,.]*\d)"
    ]
    dates = [r"(?P<year>\d{4})-(?P<month>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12]\d|3[01])(?![\w/-])"]
    behind = r"(?P<sign_behind>(?!))(?P<number>)(?P<part>)(?P<scale>)"
    if forms.signs_behind:
        behind = (
            rf"(?P<number>{number})(?:{part.replace('_first', '')}{dashes})?"
            rf"{scale.replace('_first', '')}?[ \u00a0]?(?P<sign_behind>{either})(?!\w)"
        )
    amounts.append(behind)
    dates.append(f"{forms.numeric_date}(?![\\w/-])" if forms.numeric_date else _NO_DATE)
    months = "|".join(forms.months) if forms.ordinals else "(?!)"
    dates.append(rf"(?P<named_day>0?[1-9]|[12]\d|3[01])\.[ ](?P<named_month>{months})\b")
    phone = rf"(?P<phone>\+\d[\d ()/-]{{5,18}}\d|{forms.phone})(?![\w-])"
    misread = re.compile(
        rf"(?<![\w.,/$€£-])(?:{'|'.join([*amounts, *dates, phone])})"  # amounts come first
    )
    if forms.unfinished:
        return misread, re.compile(forms.unfinished)
    begun = "|".join({re.escape(sign[:n]) for sign in signs for n in range(1, len(sign) + 1)})
    digits = r"[\d.,/'’()\u00a0\u202f–-]"
    word = rf"(?:(?:{forms.scales})[ ])?[^\W\d_]{{0,{_LONGEST_WORD}}}(?:[€$£][ ]?)?"
    return misread, re.compile(
        rf"(?:(?<=\s)|^)(?:[+(]|(?<!\d[ ])(?:{begun})[ \u00a0]?)?"
        rf"(?:\d{digits}*(?:[ ]{digits}+)*[ ]?{word})?\Z"
    )


_NO_DATE = r"(?P<d>(?!))(?P<m>)(?P<y>)"
