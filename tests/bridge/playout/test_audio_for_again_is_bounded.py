"""Audio that is kept for the case that it has to be given again."""

from __future__ import annotations

import trio
from hypothesis import given
from hypothesis import strategies as st

from bargein.bridge.playout._replay_buffer import SPARE_PIECES, KeptAudio
from bargein.events import AgentAudio, WordTiming

from .conftest import add


def test_what_was_added_is_given_back_from_a_position_on():
    """The audio from any position on is the very audio that was added there."""
    kept = KeptAudio()
    for piece in (b"0123", b"4567", b"89"):
        kept.add(piece, 100)
    assert kept.take_from(6) == (6, [b"67", b"89"])
    assert kept.take_from(0) == (0, [b"0123", b"45"])
    assert kept.take_from(0) == (0, [])


def test_nothing_behind_its_end_is_given_back():
    """From a position that nothing was added behind, nothing comes, and the end is told."""
    kept = KeptAudio()
    kept.add(b"0123", 100)
    assert kept.take_from(9) == (4, [])


def test_what_is_forgotten_is_not_given_back():
    """Audio from a position that is kept no more begins where the kept audio begins."""
    kept = KeptAudio()
    for piece in (b"0123", b"4567", b"89"):
        kept.add(piece, 100)
    kept.forget_all_but(6)
    assert kept.starts_at == 4
    assert kept.take_from(1) == (4, [b"4567", b"89"])


def test_a_cleared_one_counts_on():
    """Positions after a clear go on where the audio had ended."""
    kept = KeptAudio()
    kept.add(b"0123", 100)
    kept.clear()
    kept.add(b"4567", 100)
    assert kept.take_from(0) == (4, [b"4567"])


@given(st.lists(st.integers(1, 9), min_size=1, max_size=80), st.integers(1, 30))
def test_at_least_the_limit_is_kept_and_hardly_more(sizes, limit):
    """At least the limit is kept, if so much was added; and at most so many pieces more."""
    kept = KeptAudio()
    for count, size in enumerate(sizes, 1):
        kept.add(bytes(size), limit)
        assert kept.size == sum(sizes[:count]) - kept.starts_at
        assert min(limit, sum(sizes[:count])) <= kept.size
        assert kept.size < limit + (SPARE_PIECES + 1) * max(sizes)
    kept.forget_all_but(limit)
    assert min(limit, sum(sizes)) <= kept.size < limit + max(sizes)


def test_the_limit_holds_for_what_is_sent_again():
    """Many small pieces that are taken back make no room for as many large ones."""
    kept = KeptAudio()
    for _ in range(300):
        kept.add(b"1", 200)
    kept.take_from(0)
    for _ in range(300):
        kept.add(bytes(9), 200)
        assert kept.size < 200 + (SPARE_PIECES + 1) * 9


def test_what_is_needed_no_more_is_forgotten():
    """Whole pieces before a position go; what is at it and behind it stays."""
    kept = KeptAudio()
    for piece in (b"0123", b"4567", b"89"):
        kept.add(piece, 100)
    kept.forget_before(3)
    assert (kept.starts_at, kept.size) == (0, 10)
    kept.forget_before(6)
    assert (kept.starts_at, kept.size) == (4, 6)
    assert kept.take_from(0) == (4, [b"4567", b"89"])
    kept.forget_before(100)
    assert (kept.starts_at, kept.size) == (4, 0)


async def test_the_words_of_a_long_answer_are_bounded(playout, autojump_clock):
    """Of an answer of minutes, the times of the last words are kept, and all are heard."""
    utterance = add(playout, 1, "", 0, complete=False)
    text, most = "one two three ", 0
    words = tuple(WordTiming(word, at_s, at_s + 1) for at_s, word in enumerate(text.split()))
    for _ in range(60):
        utterance.add_text(text)
        audio = AgentAudio(bytes(6000), 1000, text, words, last=True)
        playout.add_audio(utterance, audio, trio.current_time())
        await trio.sleep(3)
        most = max(most, sum(len(segment.words) for segment in utterance.segments))
    await trio.sleep(1)
    assert most <= 12
    assert utterance.heard.split() == text.split() * 60
    assert utterance.basis == "words"
