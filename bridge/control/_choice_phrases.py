"""The phrases that answers to tools' questions are matched with, in one language."""

from __future__ import annotations

import re
import unicodedata
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


def words_of(text: str) -> list[str]:
    """Return the words of a text, normalised for comparison."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("'", "").replace("\u2019", "")
    return re.findall(r"[^\W_]+", plain)


ENGLISH = AnswerPhrases(
    never_mind=(
        "abort", "cancel", "cancel it", "cancel that", "cancel this", "drop it", "forget about it",
        "forget it", "forget that", "leave it", "never mind", "nevermind", "never mind that",
        "skip it", "skip that", "skip this", "stop", "stop it",
    ),
    polite=(
        "actually", "ah", "just", "no", "oh", "ok", "okay", "please", "so", "sorry", "thank",
        "thanks", "then", "uh", "um", "well", "you",
    ),
    fillers=(
        "a", "actually", "ah", "can", "choice", "er", "have", "i", "id", "ill", "is", "it", "just",
        "like", "make", "no", "number", "oh", "ok", "okay", "option", "please", "so", "sorry",
        "take", "thanks", "that", "the", "then", "uh", "um", "want", "well", "with", "would",
    ),
    ordinals=(
        "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
        "tenth",
    ),
    numbers=("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    last=("last",),
    negations=("not", "dont", "neither"),
    alternatives=("or", "nor"),
    yes=(
        "absolutely", "certainly", "correct", "definitely", "exactly", "fine", "go ahead", "i am",
        "i did", "i do", "i think so", "i would", "im sure", "it is", "mhm", "not incorrect",
        "not wrong", "nothing wrong", "of course", "ok", "okay", "perfect", "please do", "right",
        "sounds good", "sure", "uh huh", "y", "yeah", "yep", "yes", "yup",
    ),
    no=(
        "cannot", "cant", "do not", "dont", "i do not", "i dont", "i dont think so", "im not",
        "incorrect", "isnt", "it is not", "it isnt", "n", "nah", "no", "nope", "not",
        "not at all", "not correct", "not exactly", "not fine", "not ok", "not okay", "not right",
        "wasnt", "wrong",
    ),
    unsure=(
        "a moment", "a second", "cannot hear", "cant hear", "cannot say", "cant say", "cant tell",
        "do not care", "dont care", "do not know", "dont know", "do not mind", "dont mind",
        "do not understand", "dont understand", "hold on", "no clue", "no idea", "no preference",
        "not certain", "not necessarily", "not sure", "one moment", "wait",
    ),
    neutral=(
        "do not worry", "dont worry", "no big deal", "no bother", "no complaints", "no doubt",
        "no hurry", "no matter", "no objection", "no objections", "no offense", "no pressure",
        "no problem", "no problems", "no question", "no rush", "no trouble", "no wonder",
        "no worries", "not a problem", "not an issue", "not bad", "not to worry", "why not",
    ),
)  # fmt: skip
