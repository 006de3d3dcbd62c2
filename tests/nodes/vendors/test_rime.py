"""Rime's voice: its address, its messages, and the times of its words."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from bargein.fakes import FakeRimeVoice
from bargein.speech import SpeechPiece, TextSaid, VoiceStyle
from bargein.vendors import VendorError
from bargein.voices import RimeVoice, TimedChunks


class Rime(FakeRimeVoice):
    """Keeps the addresses of its lines."""

    def __init__(self, *args):
        super().__init__(*args)
        self.asked = []

    def admit(self, request):
        self.asked.append(parse_qs(urlsplit(request.path).query))
        assert urlsplit(request.path).path == "/ws3"
        return super().admit(request)


def rime(vendor, **given):
    return RimeVoice("astra", api_key="s3cret", base_url="ws://fake", dial=vendor.dial, **given)


async def said(voice, *clauses, style=None):
    pcm, words, flushes = 0, [], 0
    async with voice.open_context(style or VoiceStyle()) as context:
        for clause in clauses:
            await context.send(clause)
            await context.flush()
        await context.end()
        while (piece := await context.receive()) is not None:
            flushes += isinstance(piece, TextSaid)
            if isinstance(piece, SpeechPiece):
                at_s = pcm / 2 / voice.sample_rate_hz
                words += [(w.text, round(at_s + w.start_s, 2)) for w in piece.words]
                pcm += len(piece.pcm)
    return pcm, words, flushes


async def test_words_have_their_times_across_clauses(autojump_clock):
    """Each word has its place in the audio of the whole utterance, clause by clause."""
    async with Rime().open() as vendor:
        voice = rime(vendor)
        async with voice.open():
            assert await said(voice, "Two lattes, ", "please wait.") == (
                round(2 * 24_000 * 0.05 * 25),
                [("Two", 0.0), ("lattes,", 0.2), ("please", 0.6), ("wait.", 0.95)],
                2,
            )


async def test_the_address_holds_the_style(autojump_clock):
    """The speaker, the language and the speed are parameters of the address."""
    async with Rime().open() as vendor:
        voice = rime(vendor, language="en-US", query={"lang": None, "temperature": 0.5})
        async with voice.open():
            await said(voice, "Hi.")
            await said(voice, "Hola.", style=VoiceStyle(voice="luna", language="es", speed=0.8))
    assert vendor.asked[0] == {
        **{"speaker": ["astra"], "modelId": ["coda"], "audioFormat": ["pcm"]},
        **{"samplingRate": ["24000"], "segment": ["never"], "temperature": ["0.5"]},
    }
    assert vendor.asked[-1]["speaker"] == ["luna"]
    assert vendor.asked[-1]["timeScaleFactor"] == ["1.25"]


async def test_languages_have_the_vendors_codes(autojump_clock):
    """German is "ger" there; a code that the vendor alone knows stays."""
    for given, expected in (("de-DE", "ger"), ("ara", "ara")):
        async with Rime().open() as vendor:
            voice = rime(vendor, language=given)
            async with voice.open():
                await said(voice, "Hi.")
        assert vendor.asked[0]["lang"] == [expected]


async def test_an_error_of_the_vendor_is_told(autojump_clock):
    """The utterance fails with the vendor's words, and may be tried again."""

    class Refusing(Rime):
        def refused(self, asked, line):
            return ({"type": "error", "message": "no such speaker"},) if asked.flush else ()

    async with Refusing().open() as vendor:
        voice = rime(vendor)
        async with voice.open():
            with pytest.raises(VendorError, match="rejected the text") as caught:
                await said(voice, "Hi.")
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ({"words": ["b"], "start": [1.0], "end": [1.5]}, 1.0),  # from the utterance
        ({"words": ["b"], "start": [0.0], "end": [0.5]}, 1.0),  # from the flush
    ],
)
def test_times_count_from_where_the_vendor_counts(second, expected):
    """Times that run back have started anew with the flush; others go on."""
    chunks = TimedChunks(8_000)
    chunks.audio("AAAA" * 4_000)  # 0.75 s
    chunks.words({"words": ["a"], "start": [0.0], "end": [0.75]})
    chunks.audio("AAAA" * 1_333)
    chunks.flushed()
    (word,) = chunks.words(second).words
    assert word.start_s + 0.9999 == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    "odd",
    [{}, {"words": ["a"], "start": [], "end": []}, {"words": ["a"], "start": ["x"], "end": [1]}],
)
def test_odd_times_are_refused(odd):
    """What is no list of times raises what skips a message, and changes nothing."""
    with pytest.raises((KeyError, TypeError, ValueError)):
        TimedChunks(8_000).words(odd)
