"""Which of the offered choices an answer names, and whether it takes the question back.

Rules, in this order; the first that fits exactly one choice decides:
1. The answer holds all words of the choice, side by side; of two that overlap the longer counts.
2. The answer holds a word that only this choice has: "savings" for "Savings account".
3. An ordinal: "the second one", "2nd", "last".
4. A number alone, or after "number", "option" or "choice": "2", "option two".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_DIGITS = {word: str(n) for n, word in enumerate(_NUMBERS, start=1)}
_FILLERS = frozenset(
    (
        "a", "actually", "ah", "can", "choice", "er", "have", "i", "id", "ill", "is", "it", "just",
        "like", "make", "no", "number", "oh", "ok", "okay", "option", "please", "so", "sorry",
        "take", "thanks", "that", "the", "then", "uh", "um", "want", "well", "with", "would",
    )
)  # fmt: skip
"""Words around an answer that name nothing."""

NEVER_MIND = frozenset(
    (
        "abort", "cancel", "cancel it", "cancel that", "cancel this", "drop it", "forget about it",
        "forget it", "forget that", "leave it", "never mind", "nevermind", "never mind that",
        "skip it", "skip that", "skip this", "stop", "stop it",
    )
)  # fmt: skip
"""What takes a question back if nothing else is said with it."""


_POLITE = frozenset(
    (
        "actually", "ah", "just", "no", "oh", "ok", "okay", "please", "so", "sorry", "thank",
        "thanks", "then", "uh", "um", "well", "you",
    )
)  # fmt: skip


def is_never_mind(text: str) -> bool:
    """Whether somebody who was asked something does not want it any more.

    Args:
        text: Everything they said; "Oh, never mind, thanks." counts, "never mind the price" not.
    """
    words = _words(text)
    return " ".join(word for word in words if word not in _POLITE) in NEVER_MIND


def match_choice(text: str, choices: Sequence[str]) -> str | None:
    """Return the choice that an answer names.

    Args:
        text: What was said, typed or keyed.
        choices: What was offered.

    Returns:
        None if the answer names none of them, or more than one.
    """
    said = [_DIGITS.get(word, word) for word in _words(text)]
    offered = {choice: [_DIGITS.get(word, word) for word in _words(choice)] for choice in choices}
    if (named := _named(said, offered)) or (named := _hinted(said, offered)):
        return named[0] if len(named) == 1 else None
    place = _place(said, len(choices))
    return choices[place - 1] if place is not None and 1 <= place <= len(choices) else None


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).casefold().replace("'", "").replace("\u2019", "")
    return re.findall(r"[^\W_]+", plain)


def _named(said: list[str], offered: dict[str, list[str]]) -> list[str]:
    """Return the choices that stand in the answer in full, but for those inside a longer one."""
    spans: list[tuple[int, int, str]] = []
    for choice, words in offered.items():
        size = len(words)
        starts = range(len(said) - size + 1) if size else ()
        spans += [(at, at + size, choice) for at in starts if said[at : at + size] == words]
    inner = {s for s in spans for o in spans if o[0] <= s[0] and s[1] <= o[1] and o[:2] != s[:2]}
    return list(dict.fromkeys(choice for span in spans if span not in inner for choice in span[2:]))


def _hinted(said: list[str], offered: dict[str, list[str]]) -> list[str]:
    """Return the choices of which the answer has a word that no other choice has."""
    heard = set(said) - _FILLERS
    if _ordinal(said) is not None:
        heard.discard("1")  # "the second one"
    return [
        choice
        for choice, words in offered.items()
        if heard.intersection(words)
        - {word for other, own in offered.items() if other != choice for word in own}
    ]


def _place(said: list[str], count: int) -> int | None:
    """Return the place in the list that an answer names, from 1."""
    ordinal = _ordinal(said)
    if ordinal is not None:
        return count if ordinal == "last" else int(ordinal)
    numbers = [word for word in said if word not in _FILLERS]
    is_alone = len(numbers) == 1 and numbers[0].isdecimal()
    return int(numbers[0]) if is_alone else None


def _ordinal(said: list[str]) -> str | None:
    """Return the one ordinal among words, as digits or ``last``; None for none, or several."""
    found = {
        "last" if word == "last" else str(_ORDINALS.index(word) + 1)
        for word in said
        if word == "last" or word in _ORDINALS
    }
    found |= {match[1] for word in said if (match := re.fullmatch(r"(\d{1,3})(st|nd|rd|th)", word))}
    return found.pop() if len(found) == 1 else None
