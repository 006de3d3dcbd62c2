"""The phrases that answers to tools' questions are matched with, in one language."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class AnswerPhrases:
    """What callers say instead of an answer, and how they name one of several choices.

    Texts are compared as whole words, ignoring case and punctuation.

    Raises:
        TypeError: A field is not a tuple of texts.
    """

    never_mind: tuple[str, ...]
    """Phrases that withdraw the question if nothing else is said: "never mind"."""
    polite: tuple[str, ...] = ()
    """Words that may accompany them: "oh", "thanks"."""
    fillers: tuple[str, ...] = ()
    """Words around an answer that name no choice: "the", "please"."""
    ordinals: tuple[str, ...] = ()
    """The words for first, second, third and so on; separate synonyms by spaces."""
    numbers: tuple[str, ...] = ()
    """The words for one, two, three and so on; separate synonyms by spaces."""
    last: tuple[str, ...] = ()
    """The words for the last one."""
    negations: tuple[str, ...] = ()
    """Words that rule out the choice after them: "not" in "not the first one"."""
    alternatives: tuple[str, ...] = ()
    """Words that rule out one more: "or" in "not the first or the second"."""
    yes: tuple[str, ...] = ()
    """Phrases for yes; if a choice is one of them and another one a no, all of them name it."""
    no: tuple[str, ...] = ()
    """Phrases for no."""
    unsure: tuple[str, ...] = ()
    """Phrases that are neither, and make the whole answer neither: "I don't know", "wait"."""
    neutral: tuple[str, ...] = ()
    """Phrases that are neither, although a word in them is one: "no problem", "not bad"."""

    def __post_init__(self) -> None:
        for field in fields(self):
            given = getattr(self, field.name)
            if not isinstance(given, tuple) or not all(isinstance(one, str) for one in given):
                raise TypeError(f"AnswerPhrases({field.name}=) is a tuple of texts, not {given!r}")
