"""Soniox's ear: how tokens become words and turns."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from bargein.ears import SonioxEar
from bargein.fakes import FakeSonioxEar
from bargein.speech import EarFact, TurnOver, VoiceBegan, WordsHeard
from bargein.vendors import SessionLimits, VendorError
from bargein.websocket import ConnectionClosedError, accept, using

SOUND = b"\x00\x10" * 16_000


def token(text: str, end_ms: int = 0, *, final: bool = True, **more: Any) -> dict[str, Any]:
    """Return a token of 100 ms."""
    times = {"start_ms": end_ms - 100, "end_ms": end_ms} if end_ms else {}
    return {"text": text, "is_final": final, **times, **more}


END = token("<end>")


@asynccontextmanager
async def hearing(scripts: list[Sequence[Any]], **options: Any) -> AsyncIterator[Any]:
    """Open a stream to a vendor that sends the next script on each line."""

    async def serve(stream: trio.abc.Stream) -> None:
        opened = await accept(stream, lambda request: None)
        assert opened is not None
        try:
            async with using(opened[1]) as socket:
                await socket.receive()  # the configuration
                for tokens in scripts.pop(0):
                    said = tokens if isinstance(tokens, dict) else {"tokens": tokens}
                    await socket.send(json.dumps(said))
                await trio.sleep_forever()
        except* ConnectionClosedError:
            pass

    async with trio.open_nursery() as nursery:

        async def dial() -> trio.abc.Stream:
            ours, theirs = trio.testing.memory_stream_pair()
            nursery.start_soon(serve, ours)
            return theirs

        ear = SonioxEar(api_key="k", base_url="ws://fake", dial=dial, **options)
        async with ear.open_stream() as stream:
            yield stream
        nursery.cancel_scope.cancel()


async def facts(stream: Any, count: int) -> list[EarFact]:
    return [await stream.receive() for _ in range(count)]


async def test_tokens_become_words_and_a_turn(autojump_clock):
    """Final tokens add up, others replace one another, and times go from token to token."""
    script = [
        [token("How", 100, final=False)],
        [token("How", 100), token("'re", 200), token(" ", 300, final=False)],
        [token(" ", 300), token("you", 400), token("?", 500), END],
    ]
    async with hearing([script]) as stream:
        began, first, second, over = await facts(stream, 4)
    assert isinstance(began, VoiceBegan)
    assert isinstance(first, WordsHeard)
    assert first.text == "How"
    assert isinstance(second, WordsHeard)
    assert second.text == "How're"
    assert isinstance(over, TurnOver)
    assert over.text == "How're you?"
    times = [(word.text, word.start_s, word.end_s) for word in over.words]
    assert times == [("How're", 0.0, 0.2), ("you?", 0.3, 0.5)]


async def test_words_behind_the_end_begin_the_next_turn(autojump_clock):
    """One message may end a turn and begin the next one."""
    script = [[token("Hi", 100), END, token("Two", 900, final=False)], [token("Two", 900), END]]
    async with hearing([script]) as stream:
        came = await facts(stream, 5)
    kinds = [type(fact) for fact in came]
    assert kinds == [VoiceBegan, TurnOver, VoiceBegan, WordsHeard, TurnOver]
    assert [fact.text for fact in came if isinstance(fact, TurnOver)] == ["Hi", "Two"]


async def test_an_end_without_words_is_no_turn(autojump_clock):
    """A pause after a pause, and the answer to a request between turns, report nothing."""
    script = [[END], [token("<fin>")], [token("Hi", 100), END]]
    async with hearing([script]) as stream:
        assert [type(fact) for fact in await facts(stream, 2)] == [VoiceBegan, TurnOver]


async def test_translations_and_what_is_late_are_no_words(autojump_clock):
    """Tokens of a translation, and those of a turn that is over, are left out."""
    script = [
        [token("Hi", 100, speaker="2", language="en", confidence=0.5), END],
        [token("Hi", 100, final=False)],
        [token("Hallo", translation_status="translation"), token("Two", 900), END],
    ]
    async with hearing([script]) as stream:
        _, over, _, second = await facts(stream, 4)
    assert isinstance(over, TurnOver)
    assert (over.speaker, over.language, over.confidence) == ("2", "en", 0.5)
    assert isinstance(second, TurnOver)
    assert second.text == "Two"


@pytest.mark.parametrize(("code", "lines"), [(401, 1), (402, 1), (400, 1), (429, 2), (503, 2)])
async def test_an_error_that_passes_gets_another_line(autojump_clock, code, lines):
    """What is refused for good ends the stream at once; anything else is tried again."""
    scripts = [[{"tokens": [], "error_code": code, "error_message": "no"}] for _ in range(2)]
    async with hearing(scripts, limits=SessionLimits(attempts=2)) as stream:
        with pytest.raises(VendorError, match=f"Soniox: ended the session .{code}.*'no'"):
            await stream.receive()
    assert len(scripts) == 2 - lines


async def test_the_session_is_configured_once_and_the_key_is_in_no_message(autojump_clock):
    """The key travels in the handshake alone, and what is not set is not sent."""
    async with FakeSonioxEar("hi").open() as vendor:
        ear = SonioxEar(
            api_key="s3cret",
            languages=["en", "de"],
            keyterms=["latte"],
            diarize=True,
            longest_delay_s=1.5,
            sensitivity=0.0,
            base_url="ws://fake/transcribe-websocket",
            dial=vendor.dial,
        )
        async with ear.open_stream() as stream:
            await stream.send(SOUND)
            await stream.end_turn()
            while not isinstance(await stream.receive(), TurnOver):
                pass
        assert "s3cret" not in repr(ear)
        config, finalize = vendor.received
    assert finalize == {"type": "finalize"}
    assert config == {
        "model": "stt-rt-v5",
        "audio_format": "pcm_s16le",
        "sample_rate": 16_000,
        "num_channels": 1,
        "language_hints": ["en", "de"],
        "context": {"terms": ["latte"]},
        "enable_language_identification": True,
        "enable_speaker_diarization": True,
        "enable_endpoint_detection": True,
        "max_endpoint_delay_ms": 1500,
        "endpoint_sensitivity": 0.0,
    }


def test_settings_out_of_bounds_are_refused(monkeypatch):
    """Mistakes show where the ear is made, with the name of the argument."""
    monkeypatch.delenv("SONIOX_API_KEY", raising=False)
    with pytest.raises(ValueError, match="SONIOX_API_KEY"):
        SonioxEar()
    with pytest.raises(ValueError, match="longest_delay_s"):
        SonioxEar(api_key="k", longest_delay_s=0.1)
    with pytest.raises(ValueError, match="wss://"):
        SonioxEar(api_key="k", base_url="https://soniox.com")
    with pytest.raises(TypeError, match="languages"):
        SonioxEar(api_key="k", languages="en")
