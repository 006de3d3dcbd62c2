"""A language is a file: its words of callers, and the texts and numbers that an agent says.

Each file that has a language's tag as its name has its ``LANGUAGE``, and is loaded when something
asks for that language.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from bargein.routes.lazy_imports import lazy_imports

from ._language import Language, is_unspaced, normalized, words_of

if TYPE_CHECKING:
    from ._answer_phrases import AnswerPhrases
    from ._language_pack import LanguagePack, check_phrases
    from ._line_phrases import LinePhrases
    from ._line_words import LineKind, LineWords
    from ._number_forms import NumberForms
else:  # few programs need them all
    __getattr__ = lazy_imports(
        __name__,
        {
            "AnswerPhrases": "._answer_phrases",
            "LanguagePack": "._language_pack",
            "LineKind": "._line_words",
            "LinePhrases": "._line_phrases",
            "LineWords": "._line_words",
            "NumberForms": "._number_forms",
            "check_phrases": "._language_pack",
        },
    )

__all__ = [
    "AnswerPhrases",
    "Language",
    "LanguagePack",
    "LineKind",
    "LinePhrases",
    "LineWords",
    "NumberForms",
    "check_phrases",
    "is_unspaced",
    "language",
    "normalized",
    "tags",
    "with_some",
    "words_of",
]


@cache
def tags() -> tuple[str, ...]:
    """Return the tags of all languages of which something is known: the files of this folder."""
    from pkgutil import iter_modules  # most programs know the language that they want

    found = (module.name for module in iter_modules(__path__))
    return tuple(sorted(name for name in found if not name.startswith("_")))


@cache
def language(tag: str) -> Language:
    """Load what is known of a language.

    Raises:
        KeyError: Nothing is known of it.
    """
    if not tag.isalpha():
        raise KeyError(tag)
    try:
        found: Language = import_module(f"{__name__}.{tag}").LANGUAGE
    except ModuleNotFoundError:
        raise KeyError(tag) from None
    return found


def with_some(field: str) -> tuple[str, ...]:
    """Return the tags of the languages that have something in a field of `Language`."""
    return tuple(tag for tag in tags() if getattr(language(tag), field))
