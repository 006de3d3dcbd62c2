"""A followed context knows which part of its text was spoken."""

from __future__ import annotations

import pytest

from bargein.fallback import Fallback
from bargein.speech import SpokenText, VoiceStyle, open_followed_context

from .failing import WORD_S, Fault, WordVoice

CLAUSES = ("One two three, ", "four five. ")
TEXT = "".join(CLAUSES)


async def spoken_by(voice, words, *, played_s=None):
    """Return what is spoken when so many words have come, and the context was left."""
    async with open_followed_context(voice, VoiceStyle()) as context:
        for clause in CLAUSES:
            await context.send(clause)
            await context.flush()
        await context.end()
        for _ in range(words):
            if await context.receive() is None:
                break
    return context.spoken() if played_s is None else context.spoken(played_s)


@pytest.mark.parametrize(
    ("words", "spoken"), [(0, ""), (1, "One"), (2, "One two"), (5, "One two three, four")]
)
async def test_a_cut_tells_to_the_word(autojump_clock, words, spoken):
    """What was spoken and what was not are the whole text."""
    told = await spoken_by(WordVoice(), words)
    assert told == SpokenText(spoken, TEXT[len(spoken) :])


@pytest.mark.parametrize(
    ("played_s", "spoken"), [(0.0, ""), (WORD_S * 1.5, "One"), (WORD_S * 4, "One two three, four")]
)
async def test_what_was_played_counts(autojump_clock, played_s, spoken):
    """A voice is ahead of the player, and the caller has heard what was played."""
    told = await spoken_by(WordVoice(), 99, played_s=played_s)
    assert told == SpokenText(spoken, TEXT[len(spoken) :])


@pytest.mark.parametrize(("words", "spoken"), [(3, ""), (4, CLAUSES[0]), (99, TEXT)])
async def test_a_voice_without_word_times_tells_to_the_flush(autojump_clock, words, spoken):
    """A clause that is not complete does not count as spoken."""
    told = await spoken_by(WordVoice(times="none"), words)
    assert told == SpokenText(spoken, TEXT[len(spoken) :])


async def test_all_is_spoken_in_the_end(autojump_clock):
    """To the last space."""
    assert await spoken_by(WordVoice(), 99) == SpokenText(TEXT, "")


async def test_a_voice_that_another_one_replaces_tells_the_same(autojump_clock):
    """A Fallback is followed as any voice."""
    first, second = WordVoice("a"), WordVoice("b")
    first.fault = Fault("drop", 2)
    assert await spoken_by(Fallback(first, second), 4) == SpokenText(*CLAUSES)
