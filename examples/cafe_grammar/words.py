"""Finds the words in a text that matter to an order.

A recogniser writes "2 lattes", "cappucino" or "thats all", with or without punctuation; people say
"um" and start over. A word that is not in the lexicon is unknown, of kind "word".
"""

import difflib
import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from .lexicon import DISFLUENCIES, ENDINGS, EXTRAS, LONG_NAMES, NAMES, SIGNS, SPELT
from .menu import NUMBERS


class Word(NamedTuple):
    """A word or a fixed phrase: its kind, and which one of that kind."""

    kind: str
    value: str = ""


def lexicon() -> dict[tuple[str, ...], Word]:
    """Return all phrases, by their words."""
    phrases = {
        **{phrase: Word(kind) for kind, text in SIGNS.items() for phrase in text.split(",")},
        **{phrase: Word("extra", phrase.strip()) for phrase in EXTRAS.split(",")},
        **{phrase: Word(*name) for name, text in NAMES.items() for phrase in text.split(",")},
        **{word: Word("count", str(n)) for n, word in enumerate(NUMBERS)},
    }
    return {tuple(phrase.split()): word for phrase, word in phrases.items()}


LEXICON = lexicon()
SILENT = set(DISFLUENCIES.split(", "))
LONGEST = max(map(len, LEXICON))
PLURAL = {"item", "kind"}


def spelt_out(text: str) -> list[str]:
    """Return plain words, commas and question marks, without false starts."""
    text = unicodedata.normalize("NFKD", text.lower()).replace(
        "\N{RIGHT SINGLE QUOTATION MARK}", "'"
    )
    text = "".join(letter for letter in text if not unicodedata.combining(letter))
    text = re.sub(r"\b[a-z]+-(?=[\s,.]|$)", "", text)
    text = re.sub("\N{EM DASH}|\N{EN DASH}|\N{HORIZONTAL ELLIPSIS}| - ", " , ", text)
    text = re.sub(r"(\d+)\s*x\b", r"\1 ", text)
    text = re.sub(r"[a-z']+", lambda match: SPELT.get(match[0], match[0]), text)
    for ending, whole in ENDINGS.items():
        text = re.sub(rf"{ending}\b", whole, text)
    words = re.findall(r"[a-z]+|\d+|&|\?|[,.;:!]", text)
    words = ["," if word in ".;:!" else word for word in words if word not in SILENT]
    return [word for n, word in enumerate(words) if n == 0 or word != words[n - 1]]


def read(text: str) -> list[Word]:
    """Return the known and the unknown words of a text."""
    words, found, at = spelt_out(text), [], 0
    while at < len(words):
        word, length = longest(words[at : at + LONGEST])
        asks = word.kind == "is" and (at == 0 or words[at - 1] in ",?")
        if word.kind not in ("skip", "is") or asks:
            found.append(word)
        at += length
    return found


def longest(words: list[str]) -> tuple[Word, int]:
    """Return the longest phrase that words begin with, and its length."""
    if words[0] in ",?":
        return Word(words[0]), 1
    if words[0].isdigit():
        return Word("count", str(min(int(words[0]), 1000))), 1
    for length in range(len(words), 0, -1):
        phrase = (*words[: length - 1], corrected(words[length - 1]))
        singular = (*phrase[:-1], phrase[-1].removesuffix("s"))
        if phrase in LEXICON:
            return LEXICON[phrase], length
        if singular in LEXICON and LEXICON[singular].kind in PLURAL:
            word = LEXICON[singular]
            return Word(f"{word.kind}s", word.value), length
    return Word("word", words[0]), 1


@lru_cache(maxsize=1000)
def corrected(word: str) -> str:
    """Return the long name that a word is a misspelling of, or the word."""
    near = difflib.get_close_matches(word.removesuffix("s"), LONG_NAMES, 1, 0.82)
    plural = "s" if word.endswith("s") and near else ""
    return near[0] + plural if near else word
