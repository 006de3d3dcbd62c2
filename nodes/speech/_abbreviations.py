"""Abbreviations behind whose full stop a sentence goes on, by language.

They are used together, because an answer may mix languages. A word that also ends sentences ("art",
"mar") is here only where a number follows it, or not at all: "no." is an answer.
"""

# ruff: noqa: RUF001 (this module handles words of other scripts)

from __future__ import annotations

import re

_ALWAYS = {
    "en": "dr mr mrs ms mx prof st mt ft jr sr vs etc approx dept est inc ltd co corp ave blvd rd"
    " hwy sgt capt col lt maj gen gov cpl pvt cmdr adm rev hon rep sen supt insp messrs esq cf al"
    " viz tel ext jan feb apr aug sept oct nov dec incl excl bros bldg assn univ",
    "de": "hr hrn fr frl bzw usw ca evtl ggf inkl exkl zzgl bspw sog vgl mio mrd geb verh str dipl"
    " ing jur phil rer",
    "es": "sra sres srta dra dña ud uds vd vds lic arq avda aprox pág núm depto dpto",
    "fr": "mme mmes mlle mlles mgr bd av tél ste éd",
    "it": "sig dott avv geom spett egr gent ecc",
    "pt": "srª exmo exma ilmo profa sto dto esq",
    "nl": "dhr mevr mw bijv enz drs evt zgn",
    "pl": "np itd itp tzn tj ul hab inż",
    "sv da nb": "kl bl osv fx iflg vedr tlf",
    "ru": "г ул руб тыс млн млрд стр др пр им",
}
_BEFORE_NUMBERS = frozenset(
    (
        *("no", "nos", "nr", "nro", "num", "art", "fig", "p", "pp", "pg", "vol", "ch", "chap"),
        *(
            "kap",
            "abs",
            "sec",
            "apt",
            "ste",
            "rm",
            "cap",
            "mar",
            "jun",
            "jul",
            "sep",
            "ver",
        ),
    )
)
_WORDS = frozenset(word for words in _ALWAYS.values() for word in words.split())
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+")
"""Dotted abbreviations: initials, "e.g.", "p.m.", "U.S."."""
_ORDINAL = re.compile(r"\d{1,2}\.")
_BEFORE_ORDINALS = frozenset(
    (
        *("der", "dem", "den", "des", "die", "das", "am", "vom", "zum", "zur", "im", "beim", "ab"),
        *("bis", "seit", "jeder", "jeden", "jedem", "ihr", "ihre", "ihrem", "mein", "unser"),
    )
)
_MONTHS = frozenset("jan feb mär mar apr mai jun jul aug sep okt nov dez dec maj".split())  # noqa: SIM905
_LONGEST_SHORT_WORD = 4
"""The longest word that may be an abbreviation which is not listed here, in letters."""
_OPENERS = "\"'“‘«([{「『（【《¿¡*_"

NEXT_LETTERS = 3
"""How many characters behind a full stop decide whether the sentence goes on."""


def may_go_on(text: str) -> bool:
    """Return whether it depends on what follows if the sentence goes on behind its full stop.

    Args:
        text: The text up to the full stop.
    """
    word = _last_word(text)[:-1]
    is_short = len(word) <= _LONGEST_SHORT_WORD and not goes_on(text, "")
    return is_short and word.isalnum()


def goes_on(text: str, following: str) -> bool:
    """Return whether a sentence goes on behind its full stop.

    Args:
        text: The text up to the full stop.
        following: The next `NEXT_LETTERS` characters, without white space before them.
    """
    token = _last_word(text)
    word = token[:-1]
    if word in _WORDS or _DOTTED.fullmatch(token):
        return True
    if word in _BEFORE_NUMBERS and following[:1].isdigit():
        return True
    if len(word) <= _LONGEST_SHORT_WORD and word.isalnum() and following[:1].islower():
        return True
    if _ORDINAL.fullmatch(token) is None:
        return False
    before = text[: len(text) - len(token)].split()
    is_month = following[:NEXT_LETTERS].lower() in _MONTHS
    return is_month or bool(before and before[-1].lower() in _BEFORE_ORDINALS)


def _last_word(text: str) -> str:
    return text[max(text.rfind(" "), text.rfind("\n")) + 1 :].lstrip(_OPENERS).lower()
