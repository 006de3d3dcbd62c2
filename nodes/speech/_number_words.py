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
from dataclasses import dataclass
from functools import cache, partial

from ._markup import SpokenPart
from ._spoken_form import NewSpokenForm, PlainWords


@dataclass(frozen=True)
class _Currency:
    """The words of a currency: its unit and the hundredth of it, one and many."""

    one: str
    many: str
    one_part: str
    many_parts: str


@dataclass(frozen=True)
class _Language:
    """How a language says what is misread."""

    currencies: dict[str, _Currency]
    """By what is written for them, before or behind the number."""
    joint: str
    """Between units and hundredths."""
    months: tuple[str, ...]
    date: str
    """How a date is said, with its ``day``, ``month`` and ``year``."""
    numeric_date: str
    """How a date is written in digits, beside 2026-11-26; empty where people do not agree."""
    phone: str
    """A telephone number that has no country code."""
    plus: str
    scales: str
    """Numbers that are written as words between digits and currency."""
    of: str = " "
    """Between such a word and the currency."""
    thousands: str = ".,'’\u00a0\u202f"
    """What may stand between groups of three digits."""


def _currencies(*rows: tuple[str, str, str, str, str]) -> dict[str, _Currency]:
    return {sign: _Currency(*words) for signs, *words in rows for sign in signs.split()}


_LOCAL_PHONE = r"0\d{1,5}[ /-]\d{3,}(?:[ -]\d+)*"
_DAY, _MONTH, _YEAR = r"(?P<d>0?[1-9]|[12]\d|3[01])", r"(?P<m>0?[1-9]|1[0-2])", r"(?P<y>\d{4})"
_BY_SLASHES = f"{_DAY}/{_MONTH}/{_YEAR}"
_LANGUAGES = {
    "en": _Language(
        _currencies(
            ("$", "1 dollar", "dollars", "1 cent", "cents"),
            ("€", "1 euro", "euros", "1 cent", "cents"),
            ("£", "1 pound", "pounds", "1 penny", "pence"),
        ),
        " and ",
        (
            *("January", "February", "March", "April", "May", "June", "July", "August"),
            *("September", "October", "November", "December"),
        ),
        "{month} {day}, {year}",
        "",
        r"\(\d{3}\)[ ]?\d{3}[ -]\d{4}|(?:1-)?(?:\d{3}-)?\d{3}-\d{4}",
        "plus",
        "thousand|million|billion|trillion",
        thousands=",",
    ),
    "de": _Language(
        _currencies(
            ("€ EUR Euro", "ein Euro", "Euro", "ein Cent", "Cent"),
            ("$ USD Dollar", "ein Dollar", "Dollar", "ein Cent", "Cent"),
            ("£ GBP Pfund", "ein Pfund", "Pfund", "ein Penny", "Pence"),
            ("CHF Franken", "ein Franken", "Franken", "ein Rappen", "Rappen"),
        ),
        " und ",
        (
            *("Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August"),
            *("September", "Oktober", "November", "Dezember"),
        ),
        "{day} {month} {year}",
        rf"{_DAY}\.[ ]?{_MONTH}\.[ ]?{_YEAR}",
        _LOCAL_PHONE,
        "plus",
        "Tausend|Millionen|Million|Milliarden|Milliarde",
    ),
    "fr": _Language(
        _currencies(
            ("€ EUR euros euro", "un euro", "euros", "un centime", "centimes"),
            ("$ USD dollars dollar", "un dollar", "dollars", "un cent", "cents"),
            ("£ GBP livres livre", "une livre", "livres", "un penny", "pence"),
            ("CHF francs franc", "un franc", "francs", "un centime", "centimes"),
        ),
        " et ",
        (
            *("janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août"),
            *("septembre", "octobre", "novembre", "décembre"),
        ),
        "{day} {month} {year}",
        _BY_SLASHES,
        _LOCAL_PHONE,
        "plus",
        "mille|millions|million|milliards|milliard",
        " d'",
        thousands=" .'’\u00a0\u202f",
    ),
    "es": _Language(
        _currencies(
            ("€ EUR euros euro", "un euro", "euros", "un céntimo", "céntimos"),
            ("$ USD dólares dólar", "un dólar", "dólares", "un centavo", "centavos"),
            ("£ GBP libras libra", "una libra", "libras", "un penique", "peniques"),
        ),
        " con ",
        (
            *("enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto"),
            *("septiembre", "octubre", "noviembre", "diciembre"),
        ),
        "{day} de {month} de {year}",
        _BY_SLASHES,
        _LOCAL_PHONE,
        "más",
        "mil|millones|millón",
        " de ",
    ),
    "it": _Language(
        _currencies(
            ("€ EUR euro", "un euro", "euro", "un centesimo", "centesimi"),
            ("$ USD dollari dollaro", "un dollaro", "dollari", "un centesimo", "centesimi"),
            ("£ GBP sterline sterlina", "una sterlina", "sterline", "un penny", "pence"),
            ("CHF franchi franco", "un franco", "franchi", "un centesimo", "centesimi"),
        ),
        " e ",
        (
            *("gennaio", "febbraio", "marzo", "aprile", "maggio", "giugno", "luglio", "agosto"),
            *("settembre", "ottobre", "novembre", "dicembre"),
        ),
        "{day} {month} {year}",
        _BY_SLASHES,
        _LOCAL_PHONE,
        "più",
        "mila|milioni|milione|miliardi|miliardo",
        " di ",
    ),
    "pt": _Language(
        _currencies(
            ("€ EUR euros euro", "um euro", "euros", "um cêntimo", "cêntimos"),
            ("R$ BRL reais real", "um real", "reais", "um centavo", "centavos"),
            ("$ USD dólares dólar", "um dólar", "dólares", "um cêntimo", "cêntimos"),
            ("£ GBP libras libra", "uma libra", "libras", "um pêni", "pence"),
        ),
        " e ",
        (
            *("janeiro", "fevereiro", "março", "abril", "maio", "junho", "julho", "agosto"),
            *("setembro", "outubro", "novembro", "dezembro"),
        ),
        "{day} de {month} de {year}",
        _BY_SLASHES,
        _LOCAL_PHONE,
        "mais",
        "mil|milhões|milhão",
        " de ",
    ),
    "nl": _Language(
        _currencies(
            ("€ EUR euro", "één euro", "euro", "één cent", "cent"),
            ("$ USD dollar", "één dollar", "dollar", "één cent", "cent"),
            ("£ GBP pond", "één pond", "pond", "één penny", "pence"),
        ),
        " en ",
        (
            *("januari", "februari", "maart", "april", "mei", "juni", "juli", "augustus"),
            *("september", "oktober", "november", "december"),
        ),
        "{day} {month} {year}",
        f"{_DAY}[-/]{_MONTH}[-/]{_YEAR}",
        _LOCAL_PHONE,
        "plus",
        "duizend|miljoen|miljard",
    ),
}
_FIRST_DAYS = {"fr": "premier", "it": "primo"}
_GERMAN_ORDINALS = (
    *("erst", "zweit", "dritt", "viert", "fünft", "sechst", "siebt", "acht", "neunt", "zehnt"),
    *("elft", "zwölft", "dreizehnt", "vierzehnt", "fünfzehnt", "sechzehnt", "siebzehnt"),
    *("achtzehnt", "neunzehnt", "zwanzigst", "einundzwanzigst", "zweiundzwanzigst"),
    *("dreiundzwanzigst", "vierundzwanzigst", "fünfundzwanzigst", "sechsundzwanzigst"),
    *("siebenundzwanzigst", "achtundzwanzigst", "neunundzwanzigst", "dreißigst"),
    "einunddreißigst",
)
_GERMAN_ENDINGS = {
    **dict.fromkeys(("am", "vom", "zum", "bis", "den", "dem", "des", "ab", "seit", "beim"), "en"),
    **dict.fromkeys(("im", "jeden", "jedem", "diesen", "diesem", "kommenden"), "en"),
    **dict.fromkeys(("der", "die", "das"), "e"),
}
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
            language: One of ``en``, ``de``, ``fr``, ``es``, ``it``, ``pt`` and ``nl``.

        Raises:
            ValueError: Nothing is known of the language.
        """
        super().__init__()
        if language not in _LANGUAGES:
            raise ValueError(
                f"NumbersInWords(language=) is one of {list(_LANGUAGES)}: {language!r}"
            )
        self._language = language
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
        language = _LANGUAGES[self._language]
        if found["phone"]:
            return self._digits(found["phone"])
        if found["day"] or found["d"] or found["named_day"]:
            day = int(found["day"] or found["d"] or found["named_day"])
            said = _day(self._language, day, before)
            if found["named_day"]:
                return f"{said} {found['named_month']}"
            month = language.months[int(found["month"] or found["m"]) - 1]
            return language.date.format(day=said, month=month, year=found["year"] or found["y"])
        return self._amount(found)

    def _digits(self, number: str) -> str:
        """Return a telephone number digit by digit; pairs as they are, where people say them so."""
        plus = f"{_LANGUAGES[self._language].plus} " if number.startswith("+") else ""
        longest = 0 if self._language == "en" else 2
        groups = re.findall(r"\d+", number)
        return plus + ", ".join(
            group if len(group) <= longest else " ".join(group) for group in groups
        )

    def _amount(self, found: re.Match[str]) -> str:
        language = _LANGUAGES[self._language]
        number = found["number"] or found["number_first"]
        part = found["part"] or found["part_first"] or ""
        scale = found["scale"] or found["scale_first"]
        currency = language.currencies[found["sign"] or found["sign_behind"]]
        whole = re.sub(r"\D", "", number)
        if scale or len(part) == 1:
            decimal = "." if self._language == "en" else ","
            said = whole + (f"{decimal}{part}" if part else "")
            many = currency.many
            if not scale:
                return f"{said} {many}"
            of = language.of.replace("'", "e ") if many[0] not in "aeiou" else language.of
            return f"{said} {scale}{of}{many}"
        units, hundredths = int(whole), int(part or 0)
        parts = []
        if units or not hundredths:
            parts.append(currency.one if units == 1 else f"{whole} {currency.many}")
        if hundredths == 1:
            parts.append(currency.one_part)
        elif hundredths:
            parts.append(f"{hundredths} {currency.many_parts}")
        return language.joint.join(parts)


def numbers_in_words(voice: str) -> NewSpokenForm:
    """Return what makes the spoken form for an engine that misreads numbers.

    Args:
        voice: The name of a voice, which begins with its language: "de_DE-thorsten-high", "en-us".

    Returns:
        `NumbersInWords` of the language, or `PlainWords` where nothing is known of it.
    """
    language = re.split(r"[^a-z]", voice.lower(), maxsplit=1)[0]
    return partial(NumbersInWords, language) if language in _LANGUAGES else PlainWords


def _day(language: str, day: int, before: str) -> str:
    if language == "de":
        return _GERMAN_ORDINALS[day - 1] + _GERMAN_ENDINGS.get(before.lower(), "er")
    return _FIRST_DAYS.get(language, "1") if day == 1 else str(day)


@cache
def _patterns(name: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what finds all that is misread in a text, and its end that may be a part of it."""
    language = _LANGUAGES[name]
    signs = sorted(language.currencies, key=len, reverse=True)
    either = "|".join(map(re.escape, signs))
    decimal = r"\." if name == "en" else "[.,]"
    number = rf"\d{{1,3}}(?:[{language.thousands}]\d{{3}})+|\d{{1,12}}"
    part = rf"(?:{decimal}(?P<part_first>\d{{1,2}}))"
    dashes = "" if name == "en" else "|,[-–—]{1,2}"  # as in "12,- €"
    scale = rf"(?:[ ](?P<scale_first>{language.scales})\b)"
    amounts = [
        rf"(?P<sign>{either})[ \u00a0]?(?P<number_first>{number}){part}?{scale}?(?![\w,.]*\d)"
    ]
    dates = [r"(?P<year>\d{4})-(?P<month>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12]\d|3[01])(?![\w/-])"]
    behind = r"(?P<sign_behind>(?!))(?P<number>)(?P<part>)(?P<scale>)"
    if name != "en":
        behind = (
            rf"(?P<number>{number})(?:{part.replace('_first', '')}{dashes})?"
            rf"{scale.replace('_first', '')}?[ \u00a0]?(?P<sign_behind>{either})(?!\w)"
        )
    amounts.append(behind)
    dates.append(f"{language.numeric_date}(?![\\w/-])" if language.numeric_date else _NO_DATE)
    months = "|".join(language.months) if name == "de" else "(?!)"
    dates.append(rf"(?P<named_day>0?[1-9]|[12]\d|3[01])\.[ ](?P<named_month>{months})\b")
    phone = rf"(?P<phone>\+\d[\d ()/-]{{5,18}}\d|{language.phone})(?![\w-])"
    misread = re.compile(
        rf"(?<![\w.,/$€£-])(?:{'|'.join([*amounts, *dates, phone])})"  # amounts come first
    )
    if name == "en":
        return misread, _UNFINISHED_ENGLISH
    begun = "|".join({re.escape(sign[:n]) for sign in signs for n in range(1, len(sign) + 1)})
    digits = r"[\d.,/'’()\u00a0\u202f–-]"
    word = rf"(?:(?:{language.scales})[ ])?[^\W\d_]{{0,{_LONGEST_WORD}}}(?:[€$£][ ]?)?"
    return misread, re.compile(
        rf"(?:(?<=\s)|^)(?:[+(]|(?<!\d[ ])(?:{begun})[ \u00a0]?)?"
        rf"(?:\d{digits}*(?:[ ]{digits}+)*[ ]?{word})?\Z"
    )


_NO_DATE = r"(?P<d>(?!))(?P<m>)(?P<y>)"
_UNFINISHED_ENGLISH = re.compile(
    r"(?:(?<=\s)|^)(?:[$€£](?:\d[\d,.]*)?(?:[ ][a-z]{0,8})?|\d[\d-]*|\+[\d ()-]*|\(\d*\)?[\d -]*)\Z"
)
