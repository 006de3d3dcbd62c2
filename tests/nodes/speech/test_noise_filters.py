"""A filter in front of the ear, which hears nothing but what the filter leaves."""

from __future__ import annotations

import pytest
import structlog

from bargein.events import ListeningFailed, VoiceStarted
from bargein.speech import LocalSpeech, NoiseFilter
from tests.nodes.speech.hearing import SILENCE, VOICE, Engines, listening, send, times


class Blocks:
    """A filter of blocks of 10 ms that leaves as many samples, or silence, or fails."""

    def __init__(self, *, mutes: bool = False, fails: BaseException | None = None) -> None:
        self.waiting, self.mutes, self.fails, self.blocks = b"", mutes, fails, 0

    def clean(self, pcm: bytes) -> bytes:
        if self.fails is not None:
            raise type(self.fails)(*self.fails.args)
        self.waiting += pcm
        ready = len(self.waiting) // 320 * 320
        cleaned, self.waiting = self.waiting[:ready], self.waiting[ready:]
        self.blocks += ready // 320
        return bytes(ready) if self.mutes else cleaned


async def test_the_ear_hears_what_the_filter_leaves(autojump_clock: object) -> None:
    """A filter may work in blocks; a voice that it removes as noise begins no turn."""
    for mutes in (False, True):
        cleans = Blocks(mutes=mutes)
        assert isinstance(cleans, NoiseFilter)
        async with listening(Engines(), noise_filter=cleans, first=b"") as caller:
            await send(caller, SILENCE, 0.32)
            await send(caller, VOICE, 0.32)
            assert len(times(caller, VoiceStarted)) == (0 if mutes else 1)
        assert cleans.blocks == 64


@pytest.mark.parametrize("raises", [RuntimeError("no filter"), SystemExit(1)])
async def test_the_ear_hears_unfiltered_what_a_filter_fails_on(
    autojump_clock: object, raises: BaseException
) -> None:
    """A voice is heard, and the failure is told once, whatever the filter raises, until it works
    for a second."""
    cleans = Blocks(fails=raises)
    with structlog.testing.capture_logs() as logs:
        with_errors = listening(Engines(), noise_filter=cleans, expect_errors=True)
        async with with_errors as caller:
            for _ in range(2):
                cleans.fails = raises
                await send(caller, VOICE, 0.64)
                await send(caller, SILENCE, 0.64)
                cleans.fails = None
                await send(caller, SILENCE, 2.0)
            assert len(times(caller, VoiceStarted)) == 2
            assert not caller.events(ListeningFailed)
            assert len(caller.errors) == 2
    failed = [line for line in logs if line["event"] == "noise_filter_failed"]
    assert [line["filter"] for line in failed] == ["Blocks", "Blocks"]
    assert [line["withheld"] for line in logs if line["event"] == "works_again"] == [40, 39]


@pytest.mark.parametrize("pieces", [1, 7, 1000])
async def test_pieces_of_any_length_are_whole(autojump_clock: object, pieces: int) -> None:
    """What a filter keeps for its next block is not lost."""
    cleans, sound = Blocks(), bytes(range(1, 251)) * 128
    step = max(2, len(sound) // pieces // 2 * 2)
    cleaned = b"".join(cleans.clean(sound[at : at + step]) for at in range(0, len(sound), step))
    assert cleaned == sound[: len(sound) // 320 * 320]


class Returns:
    """A filter that returns something once, and then the sound as it is."""

    def __init__(self, first: object) -> None:
        self.first: object = first

    def clean(self, pcm: bytes) -> bytes:
        first, self.first = self.first, None
        return pcm if first is None else first  # type: ignore[return-value]


@pytest.mark.parametrize("wrong", [b"abc", "text", [0.5]])
async def test_a_filter_that_returns_no_samples_is_an_error(
    autojump_clock: object, wrong: object
) -> None:
    """It is named, and shifts none of the samples that follow: the voice is heard."""
    with_errors = listening(Engines(), noise_filter=Returns(wrong), expect_errors=True)
    async with with_errors as caller:
        await send(caller, VOICE, 0.32)
        assert len(times(caller, VoiceStarted)) == 1
        assert not caller.events(ListeningFailed)
        assert "Returns.clean()" in str(caller.errors[0])


def test_an_instance_where_what_makes_one_is_needed_is_refused() -> None:
    """One filter for all calls would mix their sounds: the error says what to give."""
    with pytest.raises(TypeError, match=r"LocalSpeech\(noise_filter=.*the class or a function"):
        LocalSpeech(noise_filter=Blocks())  # type: ignore[arg-type]
