"""A language is a file: what it has agrees with itself, and is all that a new one needs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bargein.bridge import languages
from bargein.bridge.control._choices import is_never_mind, match_choice
from bargein.bridge.languages import language, tags
from bargein.speech import Fillers, NumbersInWords
from bargein.user_turns import TurnSettings

YES_AND_NO = {
    "de": ("ja", "nein"),
    "en": ("yes", "no"),
    "es": ("sí", "no"),
    "fr": ("oui", "non"),
    "it": ("sì", "no"),
    "ja": ("はい", "いいえ"),
    "nl": ("ja", "nee"),
    "pl": ("tak", "nie"),
    "pt": ("sim", "não"),
    "zh": ("是", "不是"),
}
"""How each language that has `choices` says yes and no."""
ANSWERING = tuple(YES_AND_NO)


def test_each_file_has_its_language() -> None:
    """Its name is the language's tag, and a language that agents speak has all of their texts."""
    assert {"en", "de", "ja", "ru"} <= set(tags())
    for tag in tags():
        known = language(tag)
        assert known.tag == tag
        texts = [known.apology, known.in_background, *known.fillers, *known.not_understood]
        assert [bool(text.strip()) for text in texts] == [bool(known.apology)] * len(texts)
        assert bool(known.apology) == (known.choices is not None)
        assert known.turn_taking is None or known.turn_taking.name == tag


def test_what_is_not_known_is_an_error() -> None:
    """Neither a language without a file nor one that has no such words is taken for another."""
    with pytest.raises(KeyError):
        language("xx")
    with pytest.raises(KeyError):
        language("_language")
    with pytest.raises(ValueError, match=r"Fillers.of\(\) knows de, en, .* not 'ru'"):
        Fillers.of("ru")
    with pytest.raises(ValueError, match=r"knows de, en, .*, not 'ru'"):
        TurnSettings(languages=("ru",))


@pytest.mark.parametrize("tag", ANSWERING)
def test_all_words_for_yes_and_no_are_understood(tag: str) -> None:
    """Each phrase for yes names the yes, each one for no the no, and the others name neither."""
    phrases = language(tag).choices
    assert phrases is not None
    yes, no = YES_AND_NO[tag]
    for said in phrases.yes:
        assert match_choice(said, [yes, no], phrases) == yes, said
    for said in phrases.no:
        assert match_choice(said, [yes, no], phrases) == no, said
    for said in (*phrases.unsure, *phrases.neutral):
        assert match_choice(said, [yes, no], phrases) is None, said
    assert all(is_never_mind(said, phrases) for said in phrases.never_mind)


@pytest.mark.parametrize(
    ("tag", "choices", "said", "chosen"),
    [
        ("de", ["Girokonto", "Sparkonto"], "Das Zweite, bitte.", "Sparkonto"),
        ("de", ["Girokonto", "Sparkonto"], "Nicht das Sparkonto.", None),
        ("de", ["Girokonto", "Sparkonto"], "Ich möchte das Letzte.", "Sparkonto"),
        ("fr", ["Compte courant", "Livret"], "Le deuxième, s'il vous plaît.", "Livret"),
        ("fr", ["Compte courant", "Livret"], "Numéro un.", "Compte courant"),
        ("es", ["Corriente", "Ahorro"], "La última.", "Ahorro"),
        ("es", ["Corriente", "Ahorro"], "Quiero la segunda, por favor.", "Ahorro"),
        ("it", ["Corrente", "Risparmio"], "Il secondo, per favore.", "Risparmio"),
        ("pt", ["Corrente", "Poupança"], "A segunda, por favor.", "Poupança"),
        ("nl", ["Betaalrekening", "Spaarrekening"], "De tweede graag.", "Spaarrekening"),
        ("pl", ["Bieżące", "Oszczędnościowe"], "To drugie, poproszę.", "Oszczędnościowe"),
        ("zh", ["活期账户", "储蓄账户"], "第二个。", "储蓄账户"),
        ("zh", ["活期账户", "储蓄账户"], "我要储蓄账户。", "储蓄账户"),
        ("ja", ["普通預金", "定期預金"], "二番目をお願いします。", "定期預金"),
        ("en", ["Checking", "Savings"], "The second one", "Savings"),
    ],
)
def test_a_choice_is_named_in_each_language(
    tag: str, choices: list[str], said: str, chosen: str | None
) -> None:
    """By its words, its place or its number; what is ruled out is not chosen."""
    phrases = language(tag).choices
    assert phrases is not None
    assert match_choice(said, choices, phrases) == chosen


ELVISH = """
from functools import cached_property

from bargein.bridge.languages import AnswerPhrases, Language, LanguagePack, NumberForms
from bargein.bridge.languages._number_forms import currencies


class Elvish(Language):
    tag = "qya"
    fillers = ("Lú.",)
    apology = "Avatyara."
    in_background = "Rato."
    not_understood = ("Mana?",)
    abbreviations = "elv"

    @cached_property
    def turn_taking(self):
        return LanguagePack("qya", acknowledgements=("ná",), interruptions=("á pusta",))

    @cached_property
    def choices(self):
        return AnswerPhrases(never_mind=("úme",), yes=("ná",), no=("lá",))

    @cached_property
    def numbers(self):
        return NumberForms(
            currencies=currencies(("m", "er miri", "mirir", "er rantë", "rantar")),
            joint=" ar ", months=("M",) * 12, date="{day} {month} {year}", phone="(?!)",
            plus="an", scales="(?!)",
        )


LANGUAGE = Elvish()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose languages are found beside ours."""
    monkeypatch.setattr(languages, "__path__", [*languages.__path__, str(tmp_path)])
    tags.cache_clear()
    yield tmp_path
    tags.cache_clear()
    language.cache_clear()
    sys.modules.pop("bargein.bridge.languages.qya", None)


def test_a_further_language_is_one_file(folder: Path) -> None:
    """All that hears or speaks knows it as soon as its file is there."""
    (folder / "qya.py").write_text(ELVISH, "utf-8")
    tags.cache_clear()
    assert "qya" in tags()
    assert TurnSettings(languages=("qya",)).phrases.is_acknowledgement("Ná.")
    assert Fillers.of("qya").apology == "Avatyara."
    parts = [*(numbers := NumbersInWords("qya")).feed("2,50 m"), *numbers.flush()]
    assert "".join(part.spoken for part in parts) == "2 mirir ar 50 rantar"
    phrases = language("qya").choices
    assert phrases is not None
    assert match_choice("ná", ["ná", "lá"], phrases) == "ná"
