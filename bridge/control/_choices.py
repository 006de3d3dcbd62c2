"""Finds the choice that an answer names, or that it withdraws the question.

Rules, in this order; the first that fits exactly one choice decides:
0. A choice that the answer rules out is not in it: "not the savings account".
1. The answer contains all words of the choice, side by side; if two overlap, the longer one counts.
2. The answer contains a word that only this choice has: "savings" for "Savings account".
3. An ordinal: "the second one", "2nd", "last".
4. A number alone, or after "number", "option" or "choice": "2", "option two".
5. Another phrase for yes or no, if one choice is a yes and one a no: "that's right" for "Yes"; of
   two phrases that overlap, the longer one counts, so "not right" is a no. A question is neither,
   nor is "I don't know".
The words of a longer phrase that says something else name no choice: "no idea" and "no problem" are
not "No", and "not correct" is not "Correct".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ..languages import AnswerPhrases, words_of


def is_never_mind(text: str, phrases: AnswerPhrases) -> bool:
    """Whether an answer withdraws the question.

    Args:
        text: The whole answer; "Oh, never mind, thanks." counts, "never mind the price" does not.
    """
    words, polite = _words(text), _each_word(phrases.polite)
    meant = [_words(phrase) for phrase in phrases.never_mind]
    return words in meant or [word for word in words if word not in polite] in meant


def match_choice(text: str, choices: Sequence[str], phrases: AnswerPhrases) -> str | None:
    """Return the choice that an answer names.

    Returns:
        ``None`` if the answer names none of them, or more than one.
    """
    digits = _places(phrases.numbers)
    said = [digits.get(word, word) for word in _words(text)]
    offered = {choice: [digits.get(word, word) for word in _words(choice)] for choice in choices}
    else_meant = _phrases_around(offered, phrases)
    wanted = _without_ruled_out(said, offered, phrases)
    named = [name for name in _named(wanted, else_meant | offered) if name in offered]
    if not named and not _named(said, else_meant):
        named = _hinted(_without_asides(wanted, phrases), offered, phrases)
    if named:
        return named[0] if len(named) == 1 else None
    place = _place(_without_asides(wanted, phrases), len(choices), phrases)
    if place is not None and 1 <= place <= len(choices):
        return choices[place - 1]
    is_question = text.rstrip().endswith(("?", "\uff1f"))  # "right, and what does that cost?"
    return None if is_question else _agreed(_words(text), choices, phrases)


def _without_ruled_out(
    said: list[str], offered: dict[str, list[str]], phrases: AnswerPhrases
) -> list[str]:
    """Return the answer without each negation, and the choice or the word that it rules out."""
    choices = [*offered.values()]
    whole = [*choices, *_asides(phrases)]  # as in "why not"
    negations, alternatives = map(_each_word, (phrases.negations, phrases.alternatives))
    kept: list[str] = []
    at = 0
    while at < len(said):
        size = _size_at(said, at, whole)
        if size or said[at] not in negations:
            kept += said[at : at + (size or 1)]
            at += size or 1
            continue
        at = _end_of_named(said, at + 1, choices, phrases)
        while at < len(said) and said[at] in alternatives:
            at = _end_of_named(said, at + 1, choices, phrases)
    return kept


def _without_asides(said: list[str], phrases: AnswerPhrases) -> list[str]:
    """Return the answer without the longer phrases that are neither: "a second" names no place."""
    asides = [words for words in _asides(phrases) if len(words) > 1]
    kept: list[str] = []
    at = 0
    while at < len(said):
        size = _size_at(said, at, asides)
        kept += [] if size else [said[at]]
        at += size or 1
    return kept


@lru_cache(maxsize=16)
def _asides(phrases: AnswerPhrases) -> list[list[str]]:
    digits = _places(phrases.numbers)
    meant = map(_words, (*phrases.unsure, *phrases.neutral))
    return [[digits.get(word, word) for word in words] for words in meant]


def _end_of_named(
    said: list[str], start: int, choices: list[list[str]], phrases: AnswerPhrases
) -> int:
    """Return where the words end that name what is ruled out: "the savings account", "the one"."""
    at, fillers = start, _each_word(phrases.fillers)
    while at < len(said) and said[at] in fillers:
        at += 1
    first = at
    at += _size_at(said, at, choices) or 1
    is_number = first < len(said) and said[first].isdecimal()
    return at + 1 if said[at : at + 1] == ["1"] and not is_number else at  # "the second one"


def _size_at(said: list[str], at: int, known: list[list[str]]) -> int:
    """Return the length of the longest phrase that begins there; 0 for none."""
    return max((len(each) for each in known if said[at : at + len(each)] == each), default=0)


def _phrases_around(offered: dict[str, list[str]], phrases: AnswerPhrases) -> dict[str, list[str]]:
    """Return the phrases that contain a choice which is a yes or a no, and mean something else."""
    answers = [_words(phrase) for phrase in (*phrases.yes, *phrases.no)]
    alike = {choice: words for choice, words in offered.items() if words in answers}
    longer = (*phrases.yes, *phrases.no, *phrases.unsure, *phrases.neutral)
    known = {phrase: _words(phrase) for phrase in longer}
    return {
        phrase: words
        for phrase, words in known.items()
        if words not in offered.values() and _named(words, alike)
    }


def _agreed(said: list[str], choices: Sequence[str], phrases: AnswerPhrases) -> str | None:
    """Return the choice that is a yes or a no, if there is one of each and the answer says one."""
    groups = (phrases.yes, phrases.no)
    all_groups = (*groups, phrases.unsure, phrases.neutral)
    known = {phrase: _words(phrase) for group in all_groups for phrase in group}
    offered = [
        [choice for choice in choices if _words(choice) in [known[phrase] for phrase in group]]
        for group in groups
    ]
    if [len(same) for same in offered] != [1, 1]:
        return None  # "right" is no yes where the other choice is "left"
    named = _named(said, known)
    if {*named} & {*phrases.unsure}:
        return None
    meant = [same[0] for same, group in zip(offered, groups, strict=True) if {*named} & {*group}]
    return meant[0] if len(meant) == 1 else None


def _places(words: Sequence[str]) -> dict[str, str]:
    """Return the number, in digits, that each word stands for."""
    return {word: str(n) for n, one in enumerate(words, start=1) for word in _words(one)}


def _named(said: list[str], offered: dict[str, list[str]]) -> list[str]:
    """Return the choices contained in the answer in full, except those inside a longer one."""
    spans: list[tuple[int, int, str]] = []
    for choice, words in offered.items():
        size = len(words)
        starts = range(len(said) - size + 1) if size else ()
        spans += [(at, at + size, choice) for at in starts if said[at : at + size] == words]
    inner = {s for s in spans for o in spans if o[0] <= s[0] and s[1] <= o[1] and o[:2] != s[:2]}
    return list(dict.fromkeys(choice for span in spans if span not in inner for choice in span[2:]))


def _hinted(said: list[str], offered: dict[str, list[str]], phrases: AnswerPhrases) -> list[str]:
    """Return the choices that have a word of the answer that no other choice has."""
    heard = set(said) - _each_word(phrases.fillers)
    if _ordinal(said, phrases) is not None:
        heard.discard("1")  # as in "the second one"
    return [
        choice
        for choice, words in offered.items()
        if heard.intersection(words)
        - {word for other, own in offered.items() if other != choice for word in own}
    ]


def _place(said: list[str], count: int, phrases: AnswerPhrases) -> int | None:
    """Return the position in the list that an answer names, from 1; ``None`` for none."""
    ordinal = _ordinal(said, phrases)
    if ordinal is not None:
        return count if ordinal == "last" else int(ordinal)
    numbers = [word for word in said if word not in _each_word(phrases.fillers)]
    is_alone = len(numbers) == 1 and numbers[0].isdecimal()
    return int(numbers[0]) if is_alone else None


def _ordinal(said: list[str], phrases: AnswerPhrases) -> str | None:
    """Return the only ordinal, in digits or as ``last``; ``None`` for none or several."""
    places = _places(phrases.ordinals) | dict.fromkeys(_each_word(phrases.last), "last")
    found = {places[word] for word in said if word in places}
    found |= {match[1] for word in said if (match := re.fullmatch(r"(\d{1,3})(st|nd|rd|th)", word))}
    return found.pop() if len(found) == 1 else None


def _words(text: str) -> list[str]:
    return [*words_of(text)]


@lru_cache(maxsize=64)
def _each_word(phrases: tuple[str, ...]) -> frozenset[str]:
    return frozenset(word for phrase in phrases for word in words_of(phrase))
