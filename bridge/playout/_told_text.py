"""Finds what the far side tells of a text in the text that it was given.

It may tell it with other white space, case or composition, without white space and emoji, with full
stops that nobody wrote, and without words that its voice left out.  At an interruption some tell
all that was heard, some its last clause.  So letters and digits alone are compared, and a place in
the text is never inside a character that people see as one.
"""

from __future__ import annotations

import unicodedata

from .word_alignment import word_ends

SURE_CHARS = 8
"""How many letters are enough to be found behind others that were not told: as many as a long word
has."""


def after_words(told: str, given: str, heard: int, sent: int) -> int | None:
    """Return how far a text is spoken, when the next words of it were told.

    Args:
        told: The words that were spoken after those told before.
        given: The text.
        heard: How many characters of it were told before.
        sent: How many characters of it the far side has.

    Returns:
        The end of the words in the text; ``None`` if they are not in it, behind what was told.
    """
    wanted = _letters(told)[0]
    if not wanted:
        return heard
    for start in (heard, words_before(given, heard)):  # a word of which half was heard is said anew
        rest, ends = _letters(given[start:sent])
        at = rest.find(wanted)
        if at == 0 or (at > 0 and len(wanted) >= SURE_CHARS):
            return max(heard, _end(given, start + ends[at + len(wanted) - 1], told))
    end = _after_most(wanted, given[heard:sent])
    return None if end is None else _end(given, heard + end, told)


def _after_most(wanted: str, rest: str) -> int | None:
    """Return where words end in a text of which the voice has left out some; ``None`` if nowhere.

    Args:
        wanted: The letters of the words.
        rest: The text from where they may begin.
    """
    taken = start = 0
    left_out = ""
    for end in word_ends(rest):
        word, ends = _letters(rest[start:end])
        if word and wanted.startswith(word, taken):
            taken += len(word)
            if taken == len(wanted):
                return end
        elif word.startswith(wanted[taken:]):
            return start + ends[len(wanted) - taken - 1]
        else:
            left_out += word
            if len(left_out) > len(wanted) + SURE_CHARS:
                return None
        start = end
    return None


def after_stop(told: str, given: str, heard: int, sent: int) -> int | None:
    """Return how far a text is spoken, when it was interrupted after the told words.

    Args:
        told: What was heard of the text, or of its last clause.
        given: The text.
        heard: How many characters of it were told before.
        sent: How many characters of it the far side has.

    Returns:
        The end of the words in the text, at least `heard`; ``None`` if they are not in it.
    """
    wanted = _letters(told)[0]
    letters, ends = _letters(given[:sent])
    known = len(_letters(given[:heard])[0])
    if not wanted or letters[:known].endswith(wanted):
        return heard
    at = letters.find(wanted, max(0, known - len(wanted) + 1))
    if letters.startswith(wanted) and (len(wanted) > known or at < 0):
        at = 0
    return max(heard, _end(given, ends[at + len(wanted) - 1], told)) if at >= 0 else None


def words_before(text: str, chars: int) -> int:
    """Return where the word begins in whose middle a place is; the place, if it is between words.

    White space before the next word counts as behind it, so that what follows begins with a word.
    """
    if chars >= len(text) or not chars:
        return min(chars, len(text))
    if not text[chars].isspace() and not text[chars - 1].isspace():
        cut = max((at for at in range(chars) if text[at].isspace()), default=-1)
        return cut + 1
    return chars


def _end(given: str, end: int, told: str) -> int:
    """Return where a text is spoken to, whose last letter ends at a place: behind its marks, and
    behind the punctuation that was told, too."""
    told = told.rstrip()
    at = len(told)
    while at and not told[at - 1].isalnum():
        at -= 1
    behind = told[at:]
    while end < len(given) and (
        unicodedata.category(given[end]) in ("Mn", "Mc", "Me", "Cf") or given[end] in behind
    ):
        end += 1
    return end


def _letters(text: str) -> tuple[str, list[int]]:
    """Return the letters and digits of a text, and where each of them ends in it.

    Case and composition are those of comparisons: no accents, no wide forms, no ligatures.
    """
    letters: list[str] = []
    ends: list[int] = []
    for at, character in enumerate(text):
        if character.isascii():
            plain = character.lower()
        else:
            plain = unicodedata.normalize("NFKD", character.casefold())
        for letter in plain:
            if letter.isalnum():
                letters.append(letter)
                ends.append(at + 1)
    return "".join(letters), ends
