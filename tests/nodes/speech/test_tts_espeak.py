"""The espeak voice, with the real library."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from bargein.speech import (
    EspeakVoice,
    SpeechEngineError,
    SpeechNotOpenError,
    SpeechPiece,
    TextToSpeech,
)

Collect = Callable[[TextToSpeech, str], Awaitable[list[SpeechPiece]]]


async def test_says_a_text_with_word_times(pieces_of: Collect) -> None:
    """A text comes as one piece whose words are those of the text, in order, inside its length."""
    text = "Hi, can I get 25 large lattes - please? It's for Dr. Smith & co."
    async with EspeakVoice().open() as voice:
        assert isinstance(voice, TextToSpeech)
        (piece,) = await pieces_of(voice, text)
        length_s = len(piece.pcm) / 2 / voice.sample_rate_hz
    assert 3 < length_s < 9
    assert [word.text for word in piece.words] == text.split()
    times = [time for word in piece.words for time in (word.start_s, word.end_s)]
    assert times == sorted(times)
    assert times[-1] <= length_s
    assert all(word.end_s > word.start_s for word in piece.words if word.text != "-")


async def test_speed_and_voice_matter(pieces_of: Collect) -> None:
    """A faster voice is shorter, and each setting changes the sound."""

    async def say(voice: EspeakVoice) -> bytes:
        async with voice.open():
            (piece,) = await pieces_of(voice, "One large latte.")
        return piece.pcm

    slow = await say(EspeakVoice(words_per_minute=130))
    assert await say(EspeakVoice(words_per_minute=130)) == slow
    assert len(await say(EspeakVoice(words_per_minute=200))) < len(slow)
    assert await say(EspeakVoice("en-us+f3", words_per_minute=130)) != slow
    assert len(await say(EspeakVoice(words_per_minute=130, word_gap=10))) > len(slow)
    assert await say(EspeakVoice(words_per_minute=130, pitch=90, pitch_range=10)) != slow


async def test_nothing_to_say(pieces_of: Collect) -> None:
    """An empty text yields no words."""
    async with EspeakVoice().open() as voice:
        assert [piece.words for piece in await pieces_of(voice, "")] in ([], [()])


async def test_an_unknown_voice_is_an_error() -> None:
    """open raises an error that names the voice."""
    with pytest.raises(SpeechEngineError, match="no voice 'gibberish'"):
        async with EspeakVoice("gibberish").open():
            pass


async def test_outside_of_open() -> None:
    """Rate and synthesis raise before open and after it."""
    voice = EspeakVoice()
    with pytest.raises(SpeechNotOpenError):
        _ = voice.sample_rate_hz
    async with voice.open():
        assert voice.sample_rate_hz == 22_050
    with pytest.raises(SpeechNotOpenError, match="EspeakVoice is not open"):
        voice.synthesize("hello")


@pytest.mark.parametrize("brackets", ["[[{}]]", "[[[{}]]]", "[[[[{}]]]]"])
async def test_no_text_becomes_phonemes(pieces_of: Collect, brackets: str) -> None:
    """Brackets in a text are none of the engine's, also in a text with a hum, which has some."""
    text = "Mhm, I am " + brackets.format("h@l'oU") + " here."
    async with EspeakVoice().open() as voice:
        (piece,) = await pieces_of(voice, text)
        (same,) = await pieces_of(voice, "Mhm, I am [h@l'oU] here.")
    assert [word.text for word in piece.words] == text.split()
    assert abs(len(piece.pcm) - len(same.pcm)) < 0.02 * len(same.pcm)
