"""Streamed text is split into pieces that can be spoken, and nothing is lost."""

# ruff: noqa: RUF001 (the marks of other scripts are what this is about)

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import AsyncIterator

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st

from bargein.speech import ClauseSplitter, clauses

TEXTS = st.text(st.sampled_from("ab .,!?\n\"'1。，「」DrNo…—🙂éกำ") | st.characters(codec="utf-8"))


def split(text: str, **kwargs) -> list[str]:
    """The pieces of a text that comes letter by letter."""
    splitter = ClauseSplitter(**kwargs)
    pieces = [piece for letter in text for piece in splitter.feed(letter)]
    return pieces + splitter.flush()


@given(
    st.lists(TEXTS), st.integers(1, 4), st.integers(1, 9), st.integers(1, 12), st.integers(1, 40)
)
@example(["x" * 100], 2, 6, 8, 40)
@example([" " * 100], 2, 6, 8, 40)
@example(["e.g", ". a b. ", "c"], 2, 6, 8, 40)
@example(["a, b b", " b, c"], 3, 3, 8, 40)
def test_pieces_are_the_text(bits, first, waits, clause, longest) -> None:
    """The pieces, joined, are the text to the character, none empty, however the text arrives."""
    numbers = {
        "first_words": first,
        "first_waits_words": waits,
        "clause_words": clause,
        "max_characters": longest,
    }
    splitter = ClauseSplitter(**numbers)
    pieces = [piece for bit in bits for piece in splitter.feed(bit)] + splitter.flush()
    text = "".join(bits)
    assert "".join(pieces) == text
    assert all(pieces)
    assert pieces == split(text, **numbers)
    assert all(len(piece) <= longest + 1 for piece in pieces[:-1])


@pytest.mark.parametrize(
    "text",
    [
        "Sure, |a large latte and a muffin would be perfect. |Anything else?",
        "Okay! |We have one table left by the window. ",
        "Sure, a large latte. |And what would you like to go with it?",
        "Hi! What can I get you?",
        "A large latte and a muffin, |nothing else",
        "No, not today, |as we close in a few minutes",
    ],
)
def test_a_first_word_does_not_wait_for_a_long_sentence(text) -> None:
    """It is a piece of its own once the sentence has six words and goes on."""
    assert "|".join(split(text.replace("|", ""))) == text


@pytest.mark.parametrize(
    "text",
    [
        "That is $3.50 in all|",
        "We have 3,000 points, |and more. |",
        "We open at 7:30 tomorrow|",
        "Ask Dr. Smith or Mrs. Jones about it|",
        "Some pastry, |e.g. a muffin, i.e. a cake. |",
        "We close at 5 p.m. today and at 6 a.m. tomorrow|",
        "Ask J. R. Ewing about the U.S. market|",
        "See https://cafe.example/menu?x=1,2;y for all of it|",
        "Write to me@cafe.example or www.cafe.example today|",
        "Well... I do not know… maybe|",
        "Version 2.0.1 of it|",
        "1. Latte and milk. |2. Mocha|",
        "I don't know the dogs' names|",
        "Please ask for Sgt. Pepper or for Capt. Cook|",
        "Your table is No. 10 beside the window|",
        "You will meet Gen. Lee and Gov. Brown at the gate|",
        "Ihr Termin ist am dem 3. Mai um neun Uhr|",
        "Wir sehen uns Montag, |3. August um acht|",
        "Der Weg dauert wohl ca. zwanzig Minuten|",
        "Le atiende hoy la Sra. López a las nueve|",
        "M. Dupont et Mme. Durand sont là|",
        "Open example.com/a.b?C=1.5 or v2.Next or Node.js now|",
    ],
)
def test_marks_that_end_nothing(text) -> None:
    """Numbers, abbreviations, addresses and pauses hold marks that do not end a piece."""
    assert split(text.replace("|", "")) == [piece for piece in text.split("|") if piece]


@pytest.mark.parametrize(
    "text",
    [
        "Sure thing, |one latte. |Anything else? |Great! Bye now.|",
        "Sure! What size would you like? |Small or large?|",
        "No. We are out of it. |Sorry about that.|",
        'He said "go now!" |Then he (and she) left.) |Done.|',
        "First line\n|\nsecond line\n|third|",
        "One two three — |four five.|",
        "Really so?! |No way at all!! |Yes way!|",
        "Plan two: |we wait.|",
        "您好，|请问要什么？|我们有拿铁。|「好的。」|谢谢|",
        "コーヒーを、|二つください。|はい！|わ|",
        "क्या हाल है। |ठीक है|",
        "ما اسمك؟ |أنا بخير|",
        "First we heat the milk.|Then we grind it.|After that we pour?|And then!|Now|",
        "កញ្ចប់បានចេញពីឃ្លាំង។ |វានឹងមកដល់|",
        "ပါဆယ်သည် ထွက်ခွာသွားပါပြီ။ |မနက်ဖြန်|",
        "พัสดุของคุณออกจากคลังสินค้า |จะถึงมือคุณพรุ่งนี้เช้า|",
        "ጥቅልዎ ከመጋዘን ወጥቷል። |ነገ ጠዋት ይደርሳል|",
    ],
)
def test_marks_that_end_a_piece(text) -> None:
    """Sentences end a piece in many scripts, with the quotes and brackets that close them."""
    expected = [piece for piece in text.split("|") if piece]
    assert split("".join(expected)) == expected


def test_commas_count_early_and_late() -> None:
    """The first piece ends at its first comma; later ones only once they are long enough."""
    text = "Well then, a latte, a tea, two large muffins and a cake, please, and that is all."
    assert split(text) == [
        "Well then, ",
        "a latte, a tea, two large muffins and a cake, ",
        "please, and that is all.",
    ]


def test_long_text_without_marks() -> None:
    """A piece that grows too long is split at a space, or anywhere if it has none."""
    assert split("aaa bbb ccc ddd", max_characters=9) == ["aaa bbb ", "ccc ddd"]
    assert split("abcdefghijkl", max_characters=5) == ["abcde", "fghij", "kl"]


@pytest.mark.parametrize(
    "text", ["สวัสดี" * 60, "ສະບາຍດີ" * 60, "សួស្តី" * 60, "မင်္ဂလာပါ" * 40, "བཀྲ་ཤིས་" * 40, "你好" * 120]
)
def test_a_script_without_spaces_and_marks_is_heard_soon(text) -> None:
    """The first piece of unbroken text is short, and no piece begins inside a character."""
    pieces = split(text)
    assert len(pieces[0]) <= 60
    assert all(unicodedata.category(piece[0]) not in ("Mn", "Mc") for piece in pieces)


def test_a_forced_cut_is_between_two_characters_that_people_see() -> None:
    """Accents, families, flags and joined consonants stay whole."""
    for one in (
        "e\u0301",
        "👨\u200d👩\u200d👧",
        "🇩🇪",
        "👍🏽",
        "क्ष",
        "ក្ត",
        "กำ",
        "\u1100\u1161\u11a8",
    ):
        for shift in range(len(one)):
            pieces = split("x" * shift + one * 40, max_characters=23)
            ends = itertools.accumulate(len(piece) for piece in pieces)
            assert all((end - shift) % len(one) == 0 for end in ends), (one, shift)


def test_piece_comes_with_the_character_after_it() -> None:
    """A piece is returned as soon as the space after its mark arrives, and not before."""
    splitter = ClauseSplitter()
    assert splitter.feed("One latte.") == []
    assert splitter.feed(" ") == ["One latte. "]
    assert splitter.feed("Two.") == []
    assert splitter.flush() == ["Two."]
    assert splitter.flush() == []


def test_flush_begins_a_new_text() -> None:
    """After a flush the first piece comes early again."""
    splitter = ClauseSplitter()
    assert splitter.feed("One two, x") == ["One two, "]
    splitter.flush()
    assert splitter.feed("One two, x") == ["One two, "]


@pytest.mark.parametrize("name", ["first_words", "clause_words", "max_characters"])
def test_numbers_must_be_positive(name) -> None:
    """A number below one is an error when the splitter is made."""
    with pytest.raises(ValueError, match=rf"{name}=\) is a whole number from 1, not 0"):
        ClauseSplitter(**{name: 0})


async def test_clauses() -> None:
    """The async form yields each piece as soon as it is complete, and the rest at the end."""
    taken: list[str] = []

    async def texts() -> AsyncIterator[str]:
        for text in ("Sure", " thing,", " one", " latte", "."):
            taken.append(text)
            await trio.lowlevel.checkpoint()
            yield text

    pieces = clauses(texts())
    assert await anext(pieces) == "Sure thing, "
    assert taken == ["Sure", " thing,", " one"]
    assert [piece async for piece in pieces] == ["one latte."]
