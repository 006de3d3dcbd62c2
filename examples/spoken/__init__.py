"""Finds yes and no, numbers, days, times and names in plain speech.

The examples `form` and `handoff` use it. Each function looks for one thing in a typed or
transcribed text; None means that it is not there. If people correct themselves, the last word
counts, and what they refuse does not.
"""

import re
from collections.abc import Callable, Iterator
from datetime import date, time, timedelta
from itertools import takewhile
from typing import TypeVar

Found = TypeVar("Found")

UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)  # fmt: skip
TENS = (
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
)  # fmt: skip
ORDINALS = [
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
    "tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth",
    "seventeenth", "eighteenth", "nineteenth", "twentieth",
]  # fmt: skip
ORDINALS += [f"twenty {ordinal}" for ordinal in ORDINALS[:9]] + ["thirtieth", "thirty first"]
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september",
          "october", "november", "december")  # fmt: skip

ONE = "|".join(UNITS[1:10])
WORDS = rf"(?:{'|'.join(TENS)})(?:[ -](?:{ONE}))?|{'|'.join(reversed(UNITS))}"
NUMBER = rf"(?:\d+(?!\d)|(?:{WORDS})\b)"
DAY = rf"(?:the )?(?:(\d\d?)(?:st|nd|rd|th)?|({'|'.join(reversed(ORDINALS))}))\b"
MONTH = rf"({'|'.join(MONTHS)}|{'|'.join(m[:3] for m in MONTHS)})\b"
HALF = r"(?:\s*(a\.?m\b|p\.?m\b|o'? ?clock|in the evening|in the morning|at night)\.?)"
TIME = re.compile(
    rf"\b(?P<cue>(?:at|by|from|around|until)\s+(?:about\s+|around\s+)?)?"
    rf"(?:(?P<part>half|(?:a )?quarter|{NUMBER})\s+(?P<way>past|to|after|before)\s+)?"
    rf"(?P<hour>{NUMBER})"
    rf"(?:(?P<colon>[:.h])?\s?(?P<minutes>\d\d(?!\d)|fifteen|thirty|forty[ -]?five))?"
    rf"{HALF}*(?!\s*(?:people|persons?|guests|of us))",
    re.I,
)
YES = (
    r"yes|y|yeah|yep|yup|sure|of course|correct|right|exactly|perfect|absolutely|definitely|fine"
    r"|okay|ok|go ahead|do it|please do|book it|sounds good|great|confirm|confirmed|it is"
    r"|that is it"
)
NO = r"no|n|nope|nah|wrong|incorrect|(?:do not|don't) think so|do not|don't|not"
NO_REFUSAL = r"\b(?:no (?:problem|worries|rush|doubt)|(?:do not|don't) mind|why not|not bad)\b"
CORRECTION = r"\b(?:no|wait|actually|sorry|i mean|i meant|rather|make (?:it|that)|instead)\b(?! of)"
DENIED = (
    r"\b(?:not|instead of|rather than|(?:do not|don't) (?:want|mean))\s+"
    r"(?:(?:about|at|on|for|in|under|with|to|talk|speak|go|the|my|a|half|quarter|past)\s+)*(?!work)[\w:]+"
)

# "Under miller", but "for Miller" only with a capital: "for dinner" is not a name.
NAMES = (
    r"(?i:\bname(?:'s| is| to|:)|\bcall me|\bunder(?: the name(?: of)?)?|^it's) (\w.*)",
    r"(?i:\bi am|\bi'm|\bfor|\bthis is) ([A-Z].*)",
)
QUESTION = r"\s*(?:what|who|whose|how|why|where|when|which|can|could|do|does|is|are)\b"
NO_NAME = re.compile(
    r"(a|the|my|we|i|it|its|it's|is|that|this|what|who|how|why|you|do|know|guess|just|um|uh|oh|hello"
    r"|hi|there|for|at|on|to|in|and|with|please|thanks|next|dinner|people)\b[,.]?",
    re.I,
)


def means_no(text: str) -> bool:
    """Return whether a text says no anywhere."""
    return re.search(rf"\b(?:{NO})\b", re.sub(NO_REFUSAL, " ", plain(text))) is not None


def means_yes(text: str) -> bool:
    """Return whether a text says yes, and nothing in it says no."""
    yes = re.search(rf"\b(?:{YES})\b", plain(text))
    return yes is not None and not means_no(text)


def plain(text: str) -> str:
    """Return a text in lower case, with plain apostrophes and spaces, and without hyphens."""
    text = text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").replace("-", " ")
    return " ".join(text.split())


def without_denied(text: str) -> str:
    """Return a text without what it refuses: "not Friday, Saturday" is about Saturday."""
    return re.sub(DENIED, " ", text, flags=re.I)


def last_said(text: str, find: Callable[[str], Found | None]) -> Found | None:
    """Return what is found after the last correction; failing that, before it."""
    parts = re.split(CORRECTION, without_denied(text), flags=re.I)
    found = (find(part) for part in reversed(parts))
    return next((value for value in found if value is not None), None)


def value_of(number: str) -> int:
    """Return the value of a number in digits or words."""
    if number.isdigit():
        return int(number)
    words = re.split("[ -]", number.lower())
    return sum(10 * (TENS.index(w) + 2) if w in TENS else UNITS.index(w) for w in words)


def number_in(text: str) -> int | None:
    """Return the first number that is neither a time nor a day."""
    rest = without_days(without_times(plain(text)))
    found = re.search(rf"(?<!half )\b{NUMBER}", rest)  # "half eight" is a time, but which?
    return value_of(found[0]) if found else None


def people_in(text: str) -> int | None:
    """Return the number of people in a text, adding up "two adults and two kids"."""
    kinds = r"adults?|grown ups?|kids?|child(?:ren)?|bab(?:y|ies)"
    counts = re.findall(rf"\b({NUMBER})\s+(?:{kinds})\b", plain(text))
    return sum(map(value_of, counts)) if len(counts) > 1 else number_in(text)


def times(text: str) -> Iterator[re.Match[str]]:
    """Yield the times in a text, which come with "at", minutes, "o'clock" or similar words."""
    for found in TIME.finditer(text):
        half = re.search(rf"{HALF}$", found[0], re.I)
        if found["cue"] or found["way"] or (found["colon"] and found["minutes"]) or half:
            yield found


def without_times(text: str) -> str:
    """Return a text without its times."""
    for found in list(times(text)):
        text = text.replace(found[0], " ", 1)
    return text


def time_in(text: str) -> time | None:
    """Return a time of day; an hour up to eleven without "a.m." is in the afternoon or evening."""
    text = plain(text)
    if re.search(r"\b(?:noon|midday)\b", text):
        return time(12)
    found = next(times(text), None)
    if found is None:
        return None
    hour, minutes = value_of(found["hour"]), value_of(found["minutes"] or "0")
    if part := found["part"]:
        past = {"half": 30, "quarter": 15, "a quarter": 15}.get(part) or value_of(part)
        minutes = past if found["way"] in ("past", "after") else -past
    if hour < 12 and not re.search(r"a\.?m\b|morning", found[0]):
        hour += 12
    hour, minutes = divmod(60 * hour + minutes, 60)
    return time(hour, minutes) if 0 <= hour < 24 else None


def days(text: str, today: date) -> Iterator[tuple[str, date | None]]:
    """Yield the words for days in a text, each with its date; None if there is no such day."""
    text = plain(text)
    for words, ahead in (("day after tomorrow", 2), ("tomorrow", 1), ("today|tonight", 0),
                         ("this evening", 0), ("in a week|a week from today", 7)):  # fmt: skip
        if found := re.search(rf"\b(?:{words})\b", text):
            yield found[0], today + timedelta(ahead)
            return
    if found := re.search(rf"\bin ({NUMBER}) days", text):
        yield found[0], today + timedelta(value_of(found[1]))
    for pattern, month_first in ((rf"\b{MONTH} {DAY}", True), (rf"\b{DAY}(?: of)? {MONTH}", False)):
        if found := re.search(pattern, text):
            month, *day = found.groups() if month_first else (found[3], found[1], found[2])
            yield found[0], coming(today, day_number(*day), month)
            return
    named = re.search(rf"\b(?:next )?({'|'.join(WEEKDAYS)})\b", text)
    if found := re.search(rf"\b(?=the ){DAY}", text):
        yield found[0], coming(today, day_number(found[1], found[2]))
    if named:
        ahead = (WEEKDAYS.index(named[1]) - today.weekday() - 1) % 7 + 1
        if "next week" in text:
            ahead = 7 - today.weekday() + WEEKDAYS.index(named[1])
        elif re.search(rf"\ba week (?:from|on) {named[1]}|\b{named[1]} week\b", text):
            ahead += 7
        yield named[0], today + timedelta(ahead)


def day_in(text: str, today: date) -> date | None:
    """Return the first day in a text, on or after today."""
    return next((day for _, day in days(text, today)), None)


def without_days(text: str) -> str:
    """Return a text without its days."""
    for words, _ in list(days(text, date.today())):
        text = text.replace(words, " ", 1)
    return text


def day_number(digits: str | None, ordinal: str | None) -> int:
    return int(digits) if digits else ORDINALS.index(ordinal or "first") + 1


def coming(today: date, day: int, month: str = "") -> date | None:
    """Return the next date with this day, and month if one is named; None if there is none."""
    for ahead in range(366):
        one = today + timedelta(ahead)
        if one.day == day and MONTHS[one.month - 1].startswith(month):
            return one
    return None


def name_in(text: str, *, asked: bool) -> str | None:
    """Return the name in a text; if the name was asked for, it needs no words before it."""
    for found in filter(None, (re.search(pattern, text) for pattern in NAMES)):
        if words := [*takewhile(is_name, re.findall(r"[\w'-]+[,.]?", found[1])[:3])]:
            return named(words)
    if not asked or re.match(QUESTION, text, re.I):
        return None
    words = [word for word in re.findall(r"[\w'-]+", text) if not NO_NAME.fullmatch(word)]
    return named(words) if 1 <= len(words) <= 3 and all(map(is_name, words)) else None


def named(words: list[str]) -> str:
    """Return words up to a comma as a name, with capitals if it has none."""
    name = re.split("[,.]", " ".join(words))[0]
    return name if name != name.lower() else name.title()


def is_name(word: str) -> bool:
    """Return whether a word may be part of a name."""
    known = number_in(word) is not None or day_in(word, date.today()) or time_in(f"at {word}")
    return not (known or NO_NAME.fullmatch(word) or means_yes(word) or means_no(word))
