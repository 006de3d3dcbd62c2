"""How a language says amounts, dates and telephone numbers that engines misread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Currency:
    """The words of a currency: its unit and the hundredth of it, one and many."""

    one: str
    many: str
    one_part: str
    many_parts: str


@dataclass(frozen=True, kw_only=True)
class NumberForms:
    """How a language says what is misread.

    Dates and telephone numbers are found by regular expressions: a numeric date has the groups
    ``d``, ``m`` and ``y``.
    """

    currencies: Mapping[str, Currency]
    """By what is written for them, before or behind the number."""
    joint: str
    """Between units and hundredths."""
    months: tuple[str, ...]
    date: str
    """How a date is said, with its ``day``, ``month`` and ``year``."""
    numeric_date: str = ""
    """How a date is written in digits, beside 2026-11-26; empty where people do not agree."""
    phone: str
    """A telephone number that has no country code."""
    pairs: bool = True
    """Whether two digits of a telephone number are said as one number."""
    plus: str
    scales: str
    """Numbers that are written as words between digits and currency."""
    of: str = " "
    """Between such a word and the currency."""
    thousands: str = ".,'’\u00a0\u202f"  # noqa: RUF001 - the apostrophe of Swiss numbers
    """What may stand between groups of three digits."""
    decimal: str = ","
    """Before the hundredths, as it is said."""
    decimal_signs: str = ".,"
    """What may stand there."""
    signs_behind: bool = True
    """Whether a currency may also stand behind its number, with ``,-`` for no hundredths."""
    first_day: str = "1"
    """How the first day of a month is said."""
    ordinals: tuple[str, ...] = ()
    """The days of a month from the first on, without their endings; they make "3. Mai" a date."""
    ordinal_endings: Mapping[str, str] = field(default_factory=dict)
    """The ending of an ordinal, by the word before it."""
    ordinal_ending: str = ""
    """Its ending behind other words."""
    unfinished: str = ""
    """What finds the end of a text that may be a part of a number, where the usual rule finds too
    much; empty for the usual rule."""


def currencies(*rows: tuple[str, str, str, str, str]) -> dict[str, Currency]:
    """Return currencies by sign; each row has the signs, and then the words of the currency."""
    return {sign: Currency(*words) for signs, *words in rows for sign in signs.split()}


LOCAL_PHONE = r"0\d{1,5}[ /-]\d{3,}(?:[ -]\d+)*"
DAY, MONTH, YEAR = r"(?P<d>0?[1-9]|[12]\d|3[01])", r"(?P<m>0?[1-9]|1[0-2])", r"(?P<y>\d{4})"
BY_SLASHES = f"{DAY}/{MONTH}/{YEAR}"
