"""The example of a call in which a part fails."""

from __future__ import annotations

import argparse

import pytest
import trio
import trio.lowlevel

from bargein.events import WordTiming
from bargein.fallback import Fallback
from bargein.speech import SpeechPiece, VoiceStyle
from examples.failing import Fault, StallingVoice, fault_named

RATE_HZ = 1000


class Words:
    """A voice whose words take 0.3 s each, and which gives them all at once."""

    sample_rate_hz = RATE_HZ

    def __init__(self, sample: int) -> None:
        self.sample = sample

    def open(self):
        raise NotImplementedError

    async def synthesize(self, text):
        await trio.lowlevel.checkpoint()
        words = text.split()
        times = tuple(WordTiming(w, n * 0.3, (n + 1) * 0.3) for n, w in enumerate(words))
        yield SpeechPiece(bytes([self.sample, 0]) * (300 * len(words)), times)


async def test_the_other_voice_goes_on_behind_the_last_word(autojump_clock):
    """The stall of the demo falls between two words, and no word is lost or said twice."""
    fault = Fault()
    fault.begin(0.5)  # at one and a half times the pace of speech that is in the third word
    voice = Fallback(StallingVoice(Words(1), fault), Words(2))
    pcm, said = b"", []
    async with voice.open_context(VoiceStyle()) as context:
        await context.send("one two three four five")
        await context.flush()
        await context.end()
        while (piece := await context.receive()) is not None:
            if isinstance(piece, SpeechPiece):
                pcm += piece.pcm
                said += [word.text for word in piece.words]
    assert said == ["one", "two", "three", "four", "five"]
    assert (pcm.count(b"\1"), pcm.count(b"\2")) == (900, 600)


@pytest.mark.parametrize(
    ("text", "fault"), [("voice@4s", ("voice", 4.0)), ("ear@0.5", ("ear", 0.5))]
)
def test_a_fault_is_named_with_its_time(text, fault):
    """The command takes the part and the second."""
    assert fault_named(text) == fault


@pytest.mark.parametrize("text", ["voice", "speaker@4s", "voice@-1s", ""])
def test_a_fault_that_is_none_is_refused(text):
    """The error shows how it is written."""
    with pytest.raises(argparse.ArgumentTypeError, match="voice@4s"):
        fault_named(text)
