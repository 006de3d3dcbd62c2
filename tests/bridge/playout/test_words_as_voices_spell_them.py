"""What was heard of a text whose voice spells it in its own way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bargein.bridge.playout._segment import heard_length, said_end
from bargein.bridge.playout._utterance import Utterance
from bargein.bridge.playout.word_alignment import SaidWords
from bargein.events import AgentAudio, WordTiming

WORD_S = 0.3


def timed(spelled: str) -> tuple[WordTiming, ...]:
    """Words of 0.3 s each, with a short gap."""
    return tuple(
        WordTiming(word, n * WORD_S, (n + 0.9) * WORD_S) for n, word in enumerate(spelled.split())
    )


@pytest.mark.parametrize(
    ("text", "spelled", "heard"),
    [
        (
            "It costs 25 dollars and five cents, sir.",
            "It costs twenty five dollars and five cents, sir.",
            {2: "It costs", 3: "It costs", 4: "It costs 25", 5: "It costs 25 dollars"},
        ),
        (
            "That is $25 and no more.",
            "That is twenty five dollars and no more.",
            {2: "That is", 4: "That is", 5: "That is $25", 6: "That is $25 and"},
        ),
        (
            "That is $25 and no more.",
            "that is 25 dollars and no more",
            {3: "That is", 4: "That is $25", 5: "That is $25 and"},
        ),
        ("Take 5% off now.", "take five percent off now", {2: "Take", 3: "Take 5%"}),
        (
            "The cat sat on the mat and the dog ate the cake.",
            "the cat sat on the mat and the dog ate the cake",
            {1: "The", 2: "The cat", 6: "The cat sat on the mat", 8: None},
        ),
        ("No, no, no: never.", "no , no , no : never .", {1: "No,", 3: "No, no,", 4: "No, no,"}),
        (
            "Cafe\u0301 ole\u0301 now",
            "CAF\u00c9 ol\u00e9 now",
            {1: "Cafe\u0301", 2: "Cafe\u0301 ole\u0301"},
        ),
        ("Don\u2019t go to the U.S.A. now", "don't go to the USA now", {1: "Don\u2019t", 5: None}),
        ("Send an e-mail today", "send an email today", {2: "Send an", 3: "Send an e-mail"}),
        ("Dr. Nguyen is in", "doctor win is in", {1: "Dr.", 2: "Dr. Nguyen", 3: None}),
        ("Hi [laughs] there you two", "hi there you two", {2: "Hi [laughs] there"}),
        ("St. James, said the saint, is in.", "saint james said the saint is in", {1: "St."}),
        (
            "\u2014 Well \u2014 yes, sir",
            "well yes sir",
            {1: "\u2014 Well \u2014", 2: "\u2014 Well \u2014 yes,"},
        ),
        (
            "Das kostet 3 \u20ac heute",
            "das kostet drei euro heute",
            {2: "Das kostet", 3: "Das kostet 3"},
        ),
        (
            "Call 1, 2 and 3 now",
            "call one two and three now",
            {1: "Call", 4: "Call 1, 2 and", 5: "Call 1, 2 and 3"},
        ),
    ],
)
def test_a_word_is_heard_once_the_voice_has_said_it(text, spelled, heard):
    """In order, by whole words, however the voice spells them; all at the end."""
    words = timed(spelled)
    lasts_s = WORD_S * len(words)
    for count, expected in heard.items():
        chars = heard_length(text, words, count * WORD_S, lasts_s + 0.5)
        if expected is not None:
            assert text[:chars] == expected
    assert heard_length(text, words, lasts_s + 0.5, lasts_s + 0.5) == len(text)


@given(
    words=st.lists(st.sampled_from(["One", "No,", "3", "e-mail", "(so)", "Ol\u00e9!"]), min_size=1),
    times=st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9)), min_size=1),
    known=st.integers(0, 20),
    capitals=st.integers(0, 20),
)
def test_words_spelled_as_the_text_is_are_heard_like_those_that_are_not(
    words, times, known, capitals
):
    """At the same times, wherever the voice begins to write in capitals."""
    text = " ".join(words)
    same = tuple(WordTiming(word, *at) for word, at in zip(words[:known], times, strict=False))
    other = tuple(
        WordTiming(word.text.upper() if n >= capitals else word.text, word.start_s, word.end_s)
        for n, word in enumerate(same)
    )
    for played_s in (0.0, 0.5, 2.0, 7.0, 8.9):
        heard = [heard_length(text, spelled, played_s, 9.0) for spelled in (same, other)]
        assert heard[0] == heard[1]


@pytest.mark.parametrize("spelled", ["a b c d e f", "yi er san si", "x", "six five four three"])
def test_a_text_spelled_wholly_otherwise_goes_by_its_share_of_the_time(spelled):
    """Romanised, or from a dictionary of pronunciations: never more than the share."""
    text = "one two three four"
    words = timed(spelled)
    lasts_s = WORD_S * len(words)
    for tenth in range(1, 10):
        chars = heard_length(text, words, lasts_s * tenth / 10, lasts_s)
        assert chars <= len(text) * (lasts_s * tenth / 10 + 0.02) / words[-1].end_s + 1e-6


def test_scripts_without_spaces_are_aligned_by_character():
    """A number among them that is spelled out ends before what follows it."""
    text = "\u4e00\u517125\u5143\u3002\u8c22\u8c22"
    words = timed("\u4e00\u5171 \u4e8c \u5341 \u4e94 \u5143 \u8c22\u8c22")
    at = [text[: heard_length(text, words, n * WORD_S, 2.0)] for n in range(1, 7)]
    assert at == [text[:2], text[:2], text[:2], text[:4], text[:6], text]


def test_words_that_are_still_to_come_are_not_guessed():
    """While a piece grows, a word found far ahead is not believed before the next agrees."""
    text = "Give me 25 and five more"
    utterance = Utterance(1, None, interruptible=True)  # type: ignore[arg-type]  # no answer
    utterance.generated = text
    utterance.add_audio(AgentAudio(bytes(2400), 1000, text, timed("Give me"), last=False))
    late = tuple(WordTiming(w, n * 0.3, n * 0.3 + 0.27) for n, w in enumerate(("twenty", "five")))
    utterance.add_audio(AgentAudio(bytes(1200), 1000, last=False, words=late))
    utterance.hear(1780)
    assert utterance.heard == "Give me"
    last = tuple(
        WordTiming(w, n * 0.3, n * 0.3 + 0.27) for n, w in enumerate(("and", "five", "more"))
    )
    utterance.add_audio(AgentAudio(bytes(1800), 1000, words=last))
    utterance.hear(1820)
    assert utterance.heard == "Give me 25"


def test_audio_without_text_is_heard_by_the_times_of_its_words():
    """A voice that times its words need not say which text its audio belongs to."""
    utterance = Utterance(1, None, interruptible=True)  # type: ignore[arg-type]  # no answer
    utterance.generated = "It costs 25 dollars"
    words = timed("it costs twenty five dollars")
    utterance.add_audio(AgentAudio(bytes(2 * 5000), 1000, "", words))
    utterance.audio_complete = utterance.text_complete = True
    assert utterance.hear(650) == "It costs"
    assert utterance.hear(1200) == " 25"


@pytest.mark.parametrize(
    ("said", "end"),
    [
        ("It costs twenty five dollars.", "It costs 25 dollars."),
        ("it costs", "It costs"),
        ("It costs twenty five", "It costs 25"),
        ("And five cents.", None),
        ("Quite another sentence.", None),
    ],
)
def test_a_piece_of_text_is_found_however_it_is_spelled(said, end):
    """A voice may give the text of its audio in its own words; another text is none of it."""
    text = "It costs 25 dollars. And five cents."
    found = said_end(said, text, 0)
    assert (None if found is None else text[:found]) == end


@pytest.mark.parametrize(
    ("said", "length"),
    [
        (["it", "costs", "twenty"], len("It costs")),
        (["it", "costs", "twenty", "five", "dollars", "and"], len("It costs 25 dollars, and")),
        (["it", "costs", "twenty", "five", "dollars"], len("It costs 25 dollars,")),
        (["it", "costs", "twenty", "five", "more"], len("It costs")),
        (["other", "words"], 0),
    ],
)
def test_what_another_voice_need_not_say_again(said, length):
    """What counts as said ends with the last word that is surely found."""
    assert SaidWords(said).length_in("It costs 25 dollars, and no more.") == length


WRITTEN = ["a", "the", "25", "no", "$5", "\u4f60\u597d", "-", "Ab"]
SPOKEN = ["a", "the", "five", "no", "\u4f60", "\u597d", ",", "ab"]


@given(
    st.lists(st.sampled_from(WRITTEN), max_size=12),
    st.lists(st.sampled_from(SPOKEN), max_size=12),
    st.lists(st.floats(0, 5), min_size=2, max_size=6),
)
def test_whatever_a_voice_says_what_was_heard_only_grows(text, spelled, times):
    """Any words for any text: monotone, within the text, and nothing before the first sound."""
    written, words = " ".join(text), timed(" ".join(spelled))
    lengths = [heard_length(written, words, at_s, 4.0) for at_s in sorted(times)]
    assert lengths == sorted(lengths)
    assert all(0 <= length <= len(written) for length in lengths)
    assert heard_length(written, words, 0.0, 4.0) == 0
