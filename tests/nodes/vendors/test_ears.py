"""Ears of vendors, each against a fake that speaks the vendor's messages, in virtual time."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
import structlog.testing
import trio
import trio.testing

from bargein.ears import AssemblyAIEar, CartesiaEar, DeepgramFlux, DeepgramNova, ElevenLabsEar
from bargein.events import WordTiming
from bargein.speech import (
    Ear,
    EarRestarted,
    PerhapsOver,
    TurnOver,
    VoiceBegan,
    WentOn,
    WordsHeard,
)
from bargein.vendors import SessionLimits, VendorError
from bargein.websocket import ConnectionClosedError, Data, WebSocket, accept, using

SECOND = b"\x01\x02" * 16_000


@dataclass
class Line:
    """One line as the vendor had it."""

    path: str
    headers: Any
    messages: list[Data] = field(default_factory=list)
    news: trio.Event = field(default_factory=trio.Event)

    def hear(self, message: Data) -> None:
        """Keep a message."""
        self.messages.append(message)
        self.news.set()
        self.news = trio.Event()

    @property
    def audio(self) -> bytes:
        """The audio of all messages."""
        return b"".join(map(_audio_of, self.messages))


def _audio_of(message: Data) -> bytes:
    if isinstance(message, bytes):
        return message
    return base64.b64decode(json.loads(message).get("audio_base_64", ""))


class Vendor:
    """Takes all that comes, and sends what its script says."""

    def __init__(self, nursery: trio.Nursery, *scripts: list[Any]) -> None:
        self._nursery = nursery
        self._scripts = [*scripts]
        self.lines: list[Line] = []

    async def dial(self) -> trio.abc.Stream:
        """Open a stream to it."""
        mine, theirs = trio.testing.memory_stream_pair()
        self._nursery.start_soon(self._serve, theirs, self._scripts.pop(0))
        return mine

    async def _serve(self, stream: trio.abc.Stream, script: list[Any]) -> None:
        opened = await accept(stream, lambda request: None)
        assert opened is not None
        request, connection = opened
        line = Line(request.path, request.headers)
        self.lines.append(line)
        async with using(connection) as socket, trio.open_nursery() as nursery:
            nursery.start_soon(self._hear, socket, line)
            for act in script:
                if callable(act):
                    await act(socket, line)
                else:
                    await socket.send(act if isinstance(act, str) else json.dumps(act))
            await trio.sleep_forever()

    async def _hear(self, socket: WebSocket, line: Line) -> None:
        with suppress(ConnectionClosedError):
            while True:
                line.hear(await socket.receive())


def after_audio(seconds: float) -> Callable[[WebSocket, Line], Awaitable[None]]:
    """Wait until so much audio has come."""

    async def wait(socket: WebSocket, line: Line) -> None:
        with trio.fail_after(120):
            while len(line.audio) < 32_000 * seconds:
                await line.news.wait()

    return wait


async def cut(socket: WebSocket, line: Line) -> None:
    """Lose the line."""
    socket.connection.cut("gone")


def flux(event: str, text: str, sure: float = 0.1, **more: Any) -> dict[str, Any]:
    """Return a message of Deepgram's Flux."""
    words = [{"word": word, "confidence": 0.9} for word in text.split()]
    return {
        "type": "TurnInfo",
        "request_id": "r",
        "sequence_id": 1,
        "event": event,
        "turn_index": 0,
        "audio_window_start": 0.0,
        "audio_window_end": 1.0,
        "transcript": text,
        "words": words,
        "end_of_turn_confidence": sure,
        **more,
    }


def nova(text: str, at_s: float = 0.0, **more: Any) -> dict[str, Any]:
    """Return a message of Deepgram's Nova, about the audio from a time on."""
    words = [
        {"word": word, "punctuated_word": f"{word},"}
        | {"start": at_s + n / 2, "end": at_s + n / 2 + 0.4}
        | {"confidence": 0.8, "speaker": 1}
        for n, word in enumerate(text.split())
    ]
    best = {"transcript": text, "confidence": 0.8, "words": words, "languages": ["en"]}
    return {
        "type": "Results",
        "channel_index": [0, 1],
        "duration": 1.5,
        "start": at_s,
        "is_final": False,
        "speech_final": False,
        "channel": {"alternatives": [best]},
        "metadata": {
            "request_id": "r",
            "model_uuid": "m",
            "model_info": {"name": "n", "version": "v", "arch": "a"},
        },
        **more,
    }


def nova_words(text: str, segment: int, at_s: float = 0.0, *, final: bool = False) -> WordsHeard:
    """Return the words that such a message tells."""
    times = tuple(
        WordTiming(f"{word},", at_s + n / 2, at_s + n / 2 + 0.4)
        for n, word in enumerate(text.split())
    )
    return WordsHeard(text, segment, final, 0.8, "en", "1", times)


def ink(kind: str, **more: Any) -> dict[str, Any]:
    """Return a message of Cartesia's."""
    return {"type": kind, "request_id": "r", **more}


def turn(text: str, final: int, *, number: int = 0, **more: Any) -> dict[str, Any]:
    """Return a message of AssemblyAI's, of whose words so many are final."""
    words = [
        {"text": word, "start": 500 * n, "end": 500 * n + 400, "confidence": 0.7}
        | {"word_is_final": n < final}
        for n, word in enumerate(text.split())
    ]
    return {
        "type": "Turn",
        "turn_order": number,
        "turn_is_formatted": False,
        "end_of_turn": False,
        "transcript": " ".join(text.split()[:final]),
        "end_of_turn_confidence": 0.2,
        "words": words,
        **more,
    }


@dataclass
class Case:
    """One vendor: its messages for a turn, and the facts that they are."""

    make: Callable[..., Ear]
    messages: list[dict[str, Any]]
    facts: list[object]
    header: tuple[str, str]
    path: str
    end: dict[str, Any] | None = None
    farewell: dict[str, Any] | None = None


CASES = {
    "DeepgramFlux": Case(
        DeepgramFlux,
        [
            {"type": "Connected", "request_id": "r", "sequence_id": 0},
            flux("Update", ""),
            flux("StartOfTurn", "a"),
            flux("Update", "a large"),
            flux("EagerEndOfTurn", "a large latte", 0.5),
            flux("TurnResumed", "a large latte"),
            flux("EndOfTurn", "a large latte please", 0.8, trigger="model", languages=["en"]),
        ],
        [
            VoiceBegan(),
            WordsHeard("a", confidence=0.9),
            WordsHeard("a large", confidence=0.9),
            WordsHeard("a large latte", confidence=0.9),
            PerhapsOver(0.5),
            WentOn(),
            WordsHeard("a large latte", confidence=0.9),
            TurnOver("a large latte please", 0.9, language="en"),
        ],
        ("Authorization", "Token s3cret"),
        "/v2/listen?model=flux-general-en&encoding=linear16&sample_rate=16000"
        "&eager_eot_threshold=0.4",
        {"type": "ForceEndTurn"},
        {"type": "CloseStream"},
    ),
    "DeepgramNova": Case(
        DeepgramNova,
        [
            {"type": "SpeechStarted", "channel": [0, 1], "timestamp": 0.2},
            nova(""),
            nova("a large"),
            nova("a large latte", is_final=True),
            nova("please", 1.5),
            nova("please", 1.5, is_final=True, speech_final=True),
            {"type": "UtteranceEnd", "channel": [0, 1], "last_word_end": 1.4},
            nova("thanks", 3.0, is_final=True, from_finalize=True),
        ],
        [
            VoiceBegan(),
            nova_words("a large", 0),
            nova_words("a large latte", 0, final=True),
            nova_words("please", 1, 1.5),
            nova_words("please", 1, 1.5, final=True),
            TurnOver(
                language="en",
                speaker="1",
                words=(
                    WordTiming("a,", 0.0, 0.4),
                    WordTiming("large,", 0.5, 0.9),
                    WordTiming("latte,", 1.0, 1.4),
                    WordTiming("please,", 1.5, 1.9),
                ),
            ),
            VoiceBegan(),
            nova_words("thanks", 0, 3.0, final=True),
            TurnOver(language="en", speaker="1", words=(WordTiming("thanks,", 3.0, 3.4),)),
        ],
        ("Authorization", "Token s3cret"),
        "/v1/listen?model=nova-3&encoding=linear16&sample_rate=16000&interim_results=true"
        "&vad_events=true&punctuate=true&smart_format=true&endpointing=300&utterance_end_ms=1000",
        {"type": "Finalize"},
        {"type": "CloseStream"},
    ),
    "CartesiaEar": Case(
        CartesiaEar,
        [
            ink("connected"),
            ink("turn.start"),
            ink("turn.update", transcript="a large"),
            ink("turn.eager_end", transcript="a large latte"),
            ink("turn.resume"),
            ink("turn.end", transcript="a large latte please"),
        ],
        [
            VoiceBegan(),
            WordsHeard("a large"),
            WordsHeard("a large latte"),
            PerhapsOver(),
            WentOn(),
            TurnOver("a large latte please"),
        ],
        ("Authorization", "Bearer s3cret"),
        "/stt/turns/websocket?model=ink-2&encoding=pcm_s16le&sample_rate=16000",
        None,
        {"type": "close"},
    ),
    "AssemblyAIEar": Case(
        AssemblyAIEar,
        [
            {"type": "Begin", "id": "s", "expires_at": 1_800_000_000},
            {"type": "SpeechStarted", "timestamp": 200},
            turn("a large", 1),
            turn("a large latte", 3, end_of_turn=True, speaker_label="A", language_code="en"),
            turn("A large latte.", 3, end_of_turn=True, turn_is_formatted=True),
        ],
        [
            VoiceBegan(),
            WordsHeard("a large", confidence=0.7),
            TurnOver(
                "a large latte",
                0.7,
                language="en",
                speaker="A",
                words=(
                    WordTiming("a", 0.0, 0.4),
                    WordTiming("large", 0.5, 0.9),
                    WordTiming("latte", 1.0, 1.4),
                ),
            ),
        ],
        ("Authorization", "s3cret"),
        "/v3/ws?sample_rate=16000&encoding=pcm_s16le",
        {"type": "ForceEndpoint"},
        {"type": "Terminate"},
    ),
    "ElevenLabsEar": Case(
        ElevenLabsEar,
        [
            {"message_type": "session_started", "session_id": "s", "config": {}},
            {"message_type": "partial_transcript", "text": ""},
            {"message_type": "partial_transcript", "text": "a large"},
            {"message_type": "committed_transcript", "text": "a large latte"},
        ],
        [VoiceBegan(), WordsHeard("a large"), TurnOver("a large latte")],
        ("xi-api-key", "s3cret"),
        "/v1/speech-to-text/realtime?model_id=scribe_v2_realtime&audio_format=pcm_16000"
        "&commit_strategy=vad",
        {"message_type": "input_audio_chunk", "audio_base_64": "", "commit": True}
        | {"sample_rate": 16_000},
    ),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    """Return the case of each vendor."""
    return CASES[request.param]


def ear_of(case: Case, vendor: Vendor, **limits: Any) -> Ear:
    """Return the vendor's ear, in front of its fake."""
    return case.make(
        api_key="s3cret",
        base_url="ws://fake",
        dial=vendor.dial,
        limits=SessionLimits(attempts=3, **limits),
    )


async def test_facts_of_a_turn(autojump_clock, nursery, case):
    """What the vendor sends of a turn becomes the facts of the turn, in order."""
    vendor = Vendor(nursery, case.messages)
    async with ear_of(case, vendor).open_stream() as stream:
        heard = [await stream.receive() for _ in case.facts]
        assert heard == case.facts
        with trio.move_on_after(5):
            pytest.fail(f"one more: {await stream.receive()!r}")
    nursery.cancel_scope.cancel()


async def test_the_vendor_gets_the_audio_and_the_key(autojump_clock, nursery, case):
    """The address, the key and every sample arrive, and the end of a turn is asked for."""
    vendor = Vendor(nursery, [])
    async with ear_of(case, vendor).open_stream() as stream:
        for start in range(0, len(SECOND), 640):
            await stream.send(SECOND[start : start + 640])
        await stream.send(b"\x03\x04")
        await stream.end_turn()
        await trio.sleep(1)
    await trio.sleep(1)
    (line,) = vendor.lines
    assert line.path == case.path
    assert line.headers[case.header[0]] == case.header[1]
    assert line.audio.startswith(SECOND + b"\x03\x04")
    assert set(line.audio[len(SECOND) + 2 :]) <= {0}
    texts = [json.loads(m) for m in line.messages if isinstance(m, str)]
    asked = [t for t in texts if not t.get("audio_base_64") and t.get("type") != "KeepAlive"]
    assert asked == [told for told in (case.end, case.farewell) if told is not None]
    if case.end is None:
        assert len(line.audio) > len(SECOND) + 30_000  # silence ends the turn
    nursery.cancel_scope.cancel()


async def test_a_turn_is_heard_again_on_another_line(autojump_clock, nursery, case):
    """A line that breaks in mid-turn is replaced, and the new one gets the turn's audio again."""
    words = next(m for m in case.messages if "large" in json.dumps(m))
    vendor = Vendor(nursery, [words, after_audio(0.9), cut], [*case.messages])
    async with ear_of(case, vendor).open_stream() as stream:
        assert [type(await stream.receive()) for _ in range(2)] == [VoiceBegan, WordsHeard]
        await stream.send(SECOND)
        assert await stream.receive() == EarRestarted()
        assert [await stream.receive() for _ in case.facts] == case.facts
        await trio.sleep(1)
    assert len(vendor.lines[1].audio) >= 0.9 * len(SECOND)
    nursery.cancel_scope.cancel()


@pytest.mark.proof
async def test_silence_is_not_kept_for_ever(autojump_clock, nursery, case):
    """While nobody speaks, a new line gets the last two seconds and no more."""
    vendor = Vendor(nursery, [after_audio(60), cut], [])
    async with ear_of(case, vendor).open_stream() as stream:
        for _ in range(60):
            await stream.send(SECOND)
        with trio.move_on_after(5):
            await stream.receive()
    assert 1.5 < len(vendor.lines[1].audio) / len(SECOND) <= 2.2
    nursery.cancel_scope.cancel()


GARBAGE = ["", "no json", "[]", "null", "{}", '{"type": 7}', '{"type": "TurnInfo"}', "[" * 5000]


async def test_garbage_is_left_out(autojump_clock, nursery, case):
    """Messages that nobody can read cost nothing but a line of the log without their words."""
    vendor = Vendor(nursery, [*GARBAGE, *case.messages])
    with structlog.testing.capture_logs() as logs:
        async with ear_of(case, vendor).open_stream() as stream:
            assert [await stream.receive() for _ in case.facts] == case.facts
    told = [entry for entry in logs if entry["event"] == "vendor_message_unreadable"]
    assert told
    assert set(told[0]) == {"event", "log_level", "vendor", "error"}
    nursery.cancel_scope.cancel()


async def test_nothing_but_garbage_ends_the_stream(autojump_clock, nursery, case):
    """A vendor that sends nothing that can be read is an error, not a silence."""
    vendor = Vendor(nursery, ["rubbish"] * 30)
    async with ear_of(case, vendor).open_stream() as stream:
        with pytest.raises(VendorError, match="20 messages in a row"):
            await stream.receive()
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize("where", range(8))
async def test_cancelling_loses_no_fact(autojump_clock, nursery, case, where):
    """A fact is not lost if receive() is cancelled while it waits for it."""
    spread = [step for m in case.messages for step in (_pause, m)]
    vendor = Vendor(nursery, spread)
    heard = []
    async with ear_of(case, vendor).open_stream() as stream:
        while len(heard) < len(case.facts):
            with trio.move_on_after(0.03 + 0.011 * where):
                heard.append(await stream.receive())
    assert heard == case.facts
    nursery.cancel_scope.cancel()


async def test_a_word_that_is_said_twice_is_heard_twice(autojump_clock, nursery):
    """Two equal messages are two turns, unless they come at once: Scribe's have no numbers, and a
    silence of 0.3 s may end a turn there."""
    committed = {"message_type": "committed_transcript", "text": "two"}

    async def speak(socket: WebSocket, line: Line) -> None:
        await trio.sleep(0.3)

    vendor = Vendor(nursery, [committed, committed, speak, committed])
    heard = []
    async with ear_of(CASES["ElevenLabsEar"], vendor).open_stream() as stream:
        with trio.move_on_after(5):
            while True:
                heard.append(await stream.receive())
    assert heard == [VoiceBegan(), TurnOver("two")] * 2
    nursery.cancel_scope.cancel()


async def _pause(socket: WebSocket, line: Line) -> None:
    await trio.sleep(0.1)


ERRORS = {
    "DeepgramFlux": {"type": "Error", "code": "X", "description": "no", "sequence_id": 1},
    "CartesiaEar": {"type": "error", "error_code": "X", "message": "no", "status_code": 400},
    "AssemblyAIEar": {"type": "Error", "error_code": 1, "error": "no"},
    "ElevenLabsEar": {"message_type": "auth_error", "error": "no"},
}


@pytest.mark.parametrize("name", ERRORS)
async def test_an_error_of_the_vendor_ends_in_an_error_of_ours(autojump_clock, nursery, name):
    """What the vendor calls an error is raised once no other line helps, with its code."""
    vendor = Vendor(nursery, *([ERRORS[name]] for _ in range(3)))
    async with ear_of(CASES[name], vendor).open_stream() as stream:
        with pytest.raises(VendorError, match="'no'") as caught:
            await stream.receive()
    assert caught.value.code
    assert len(vendor.lines) == (3 if caught.value.retryable else 1)
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize("name", CASES)
def test_without_a_key_nothing_is_made(monkeypatch, name):
    """A missing key is an error when the ear is made, and names the variable."""
    for variable in ("DEEPGRAM", "CARTESIA", "ASSEMBLYAI", "ELEVENLABS"):
        monkeypatch.delenv(f"{variable}_API_KEY", raising=False)
    with pytest.raises(ValueError, match="_API_KEY"):
        CASES[name].make()
