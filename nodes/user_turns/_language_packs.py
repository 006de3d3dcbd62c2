"""What people say to show that they listen, to make somebody stop, and before they stop to think.

An acknowledgement keeps the other one talking; an interruption phrase wants silence.  Words that
can be either ("no", "but") are in neither list: their number decides.  Each list holds
the words of the language's everyday speech and the spellings that recognisers give them.

A sentence is unfinished behind an article, a conjunction, a filler, or a verb that needs more.
Left out are words that end sentences as well: prefixes of German verbs ("Ich rufe an"), answers
such as "Yes, it is".

Short answers and noises are heard alike by a detector of sounds, and are as short: their text tells
them apart.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LanguagePack:
    """The acknowledgements and interruption phrases of a language.

    Case, accents and punctuation are ignored, here and in transcripts.
    """

    name: str
    """How settings name it: a tag of BCP 47, such as ``"en"``."""
    acknowledgements: tuple[str, ...]
    """Words that alone, repeated or combined, never interrupt."""
    interruptions: tuple[str, ...]
    """Words that interrupt wherever they stand."""
    unfinished: tuple[str, ...] = ()
    """Words with which no sentence ends: what ends with one goes on."""
    unfinished_statements: tuple[str, ...] = ()
    """The same for sentences without a question word: "I come from" goes on, "Where are you from?"
    does not."""
    question_words: tuple[str, ...] = ()
    """The question words."""
    numbers: tuple[str, ...] = ()
    """The words of numbers; figures ("2") are known in every language."""
    articles: tuple[str, ...] = ()
    """Words behind which an adjective may stand: "a", "two"."""
    adjectives: tuple[str, ...] = ()
    """Adjectives that want a noun behind them if an article stands before them: "a large"."""
    short_answers: tuple[str, ...] = ()
    """Short words that callers say alone and mean: "no", "next".  They count although their sound
    resembles assent, and so do numbers."""
    noises: tuple[str, ...] = ()
    """What recognisers write for a laugh, a cough or a sneeze: "ha", "ugh"."""

    def __post_init__(self) -> None:
        """Check the words.

        Raises:
            ValueError: The name is empty, or a phrase has no letter or digit.
            TypeError: Phrases are not a tuple of strings.
        """
        if not self.name:
            raise ValueError("LanguagePack(name=) is empty; give a tag such as 'en'")
        for field in _PHRASES:
            check_phrases(f"LanguagePack({field}=)", getattr(self, field))


_PHRASES = (
    "acknowledgements",
    "interruptions",
    "unfinished",
    "unfinished_statements",
    "question_words",
    "numbers",
    "articles",
    "adjectives",
    "short_answers",
    "noises",
)


def check_phrases(what: str, phrases: object) -> None:
    """Raise when something is no tuple of phrases.

    Args:
        what: Names it in the error.
        phrases: What was given.
    """
    if not isinstance(phrases, tuple) or not all(isinstance(p, str) for p in phrases):
        raise TypeError(f"{what} is a tuple of strings, not {phrases!r}")
    for phrase in phrases:
        if not any(char.isalnum() for char in phrase):
            raise ValueError(f"{what} has a phrase without a letter: {phrase!r}; leave it out")
