"""OpenAI's ear against a fake that speaks the vendor's messages, in virtual time."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import structlog.testing
import trio
import trio.testing

from bargein import Call, ChatNode
from bargein.ears import OpenAIEar
from bargein.events import UserAudio, UserStoppedSpeaking, UserTranscriptionReceived
from bargein.speech import (
    EarFact,
    EarRestarted,
    PerhapsOver,
    StreamingSpeech,
    TurnOver,
    VoiceBegan,
    WentOn,
    WordsHeard,
)
from bargein.testing import ScriptedModel, check_ear, open_call
from bargein.user_turns import ModelEndpointing, TurnSettings, TurnTaking
from bargein.vendors import SessionLimits, VendorError
from bargein.websocket import ConnectionClosedError, WebSocket, accept, using

SECOND = b"\x00\x10" * 16_000
HEARS = "conversation.item.input_audio_transcription."


def buffer(event: str, item: str, **more: Any) -> dict[str, Any]:
    """Return a message about the caller's audio."""
    return {"type": f"input_audio_buffer.{event}", "event_id": "e", "item_id": item, **more}


def began(item: str) -> dict[str, Any]:
    """Return that a stretch of voice began."""
    return buffer("speech_started", item, audio_start_ms=0)


def stopped(item: str) -> list[dict[str, Any]]:
    """Return the two messages at the end of a stretch of speech."""
    return [buffer("speech_stopped", item, audio_end_ms=900), buffer("committed", item)]


def delta(item: str, text: str) -> dict[str, Any]:
    """Return some words of an item."""
    return {"type": HEARS + "delta", "event_id": "e", "item_id": item, "delta": text}


def words(item: str, text: str, **more: Any) -> dict[str, Any]:
    """Return the final words of an item."""
    usage = {"type": "duration", "seconds": 1.0}
    told = {"item_id": item, "content_index": 0, "transcript": text, "usage": usage}
    return {"type": HEARS + "completed", "event_id": "e", **told, **more}


class Line(list[dict[str, Any]]):
    """The messages that came over one line."""

    def __init__(self) -> None:
        super().__init__()
        self.news = trio.Event()

    async def until(self, message_type: str, count: int) -> None:
        """Wait for so many messages of a type."""
        while sum(m["type"] == message_type for m in self) < count:
            self.news = trio.Event()
            await self.news.wait()


class FakeOpenAI:
    """Sends what its scripts say, one a line, and keeps what comes."""

    def __init__(self, nursery: trio.Nursery, *scripts: list[Any]) -> None:
        self._nursery = nursery
        self._scripts = [*scripts]
        self.requests: list[Any] = []
        self.lines: list[Line] = []

    async def dial(self) -> trio.abc.Stream:
        """Open a stream to it."""
        mine, theirs = trio.testing.memory_stream_pair()
        self._nursery.start_soon(self._serve, theirs, self._scripts.pop(0))
        return mine

    async def _serve(self, stream: trio.abc.Stream, script: list[Any]) -> None:
        opened = await accept(stream, lambda request: None)
        if opened is None:
            return  # it was left before it was open
        self.requests.append(opened[0])
        line = Line()
        self.lines.append(line)
        with suppress(ConnectionClosedError):
            async with using(opened[1]) as socket, trio.open_nursery() as nursery:
                nursery.start_soon(self._hear, socket, line, nursery.cancel_scope)
                for act in script:
                    if callable(act):
                        await act(socket, line)
                    else:
                        await socket.send(json.dumps(act))
                await trio.sleep_forever()

    async def _hear(self, socket: WebSocket, line: Line, scope: trio.CancelScope) -> None:
        with suppress(ConnectionClosedError):
            while True:
                line.append(json.loads(await socket.receive()))
                line.news.set()
        scope.cancel()

    def audio(self, line: int) -> bytes:
        """Return the audio of a line."""
        sent = (m["audio"] for m in self.lines[line] if m["type"].endswith("append"))
        return b"".join(map(base64.b64decode, sent))


def after(message_type: str, count: int = 1) -> Callable[[WebSocket, Any], Awaitable[None]]:
    """Wait for so many messages of a type."""

    async def wait(socket: WebSocket, line: Line) -> None:
        await line.until(message_type, count)

    return wait


async def lose(socket: WebSocket, line: Any) -> None:
    """Lose the line."""
    socket.connection.cut("gone")


def ear_of(vendor: FakeOpenAI, **options: Any) -> OpenAIEar:
    """Return the ear in front of a fake."""
    limits = SessionLimits(attempts=2)
    return OpenAIEar(
        api_key="s3cret", url="ws://fake/v1", dial=vendor.dial, limits=limits, **options
    )


async def facts_of(nursery: trio.Nursery, *script: Any, **options: Any) -> list[EarFact]:
    """Return all facts that the ear reports for a vendor's messages."""
    facts: list[EarFact] = []
    async with ear_of(FakeOpenAI(nursery, [*script]), **options).open_stream() as stream:
        with trio.move_on_after(1):
            while True:
                facts.append(await stream.receive())
    nursery.cancel_scope.cancel()
    return facts


async def test_a_stretch_of_voice_is_a_turn(autojump_clock, nursery):
    """Words come once the stretch is committed; interim words do not count as a voice."""
    sure = [{"token": "a", "bytes": [], "logprob": -0.1}, {"token": "b", "logprob": -0.3}]
    assert await facts_of(
        nursery,
        {"type": "session.created", "event_id": "e", "session": {}},
        began("i1"),
        *stopped("i1"),
        delta("i1", "a large"),
        words("i1", "a large latte", languages=[{"code": "en"}], logprobs=sure),
    ) == [
        VoiceBegan(),
        PerhapsOver(),
        WordsHeard(
            "a large latte", final=True, confidence=pytest.approx(0.8187, abs=1e-3), language="en"
        ),
        TurnOver(),
    ]


async def test_who_goes_on_before_the_words_are_known_is_not_done(autojump_clock, nursery):
    """A stretch that begins before the last one is transcribed is a second segment of its turn."""
    assert await facts_of(
        nursery,
        began("i1"),
        *stopped("i1"),
        began("i2"),
        words("i1", "a large"),
        *stopped("i2"),
        words("i2", "latte please"),
    ) == [
        VoiceBegan(),
        PerhapsOver(),
        WentOn(),
        WordsHeard("a large", 0, final=True),
        PerhapsOver(),
        WordsHeard("latte please", 1, final=True),
        TurnOver(),
    ]


async def test_words_may_come_in_any_order(autojump_clock, nursery):
    """The words of the second stretch may be known first; the turn waits for both."""
    facts = await facts_of(
        nursery,
        began("i1"),
        *stopped("i1"),
        began("i2"),
        *stopped("i2"),
        words("i2", "latte"),
        words("i1", "a large"),
        words("i1", "told twice"),
        words("i9", "of nobody"),
    )
    assert [fact for fact in facts if isinstance(fact, WordsHeard)] == [
        WordsHeard("latte", 1, final=True),
        WordsHeard("a large", 0, final=True),
    ]
    assert [fact for fact in facts if isinstance(fact, TurnOver)] == [TurnOver()]


async def test_what_comes_late_of_a_turn_begins_no_other(autojump_clock, nursery):
    """Words, and the end of a stretch, that come once the turn is over are dropped."""
    facts = await facts_of(
        nursery,
        began("i1"),
        *stopped("i1"),
        words("i1", "a large latte"),
        *stopped("i1"),
        delta("i1", "latte"),
        words("i1", "a large latte"),
    )
    assert facts == [
        VoiceBegan(),
        PerhapsOver(),
        WordsHeard("a large latte", final=True),
        TurnOver(),
    ]


async def test_a_start_behind_its_stop_starts_nothing(autojump_clock, nursery):
    """A stretch whose start is reported after its end is over once its words are known."""
    facts = await facts_of(nursery, *stopped("i1"), began("i1"), words("i1", "a large latte"))
    assert facts[-1] == TurnOver()


async def test_what_cannot_be_transcribed_ends_the_turn_without_words(autojump_clock, nursery):
    """A failure of the recogniser is logged by its code, and nobody waits for words."""
    failed = {"type": HEARS + "failed", "event_id": "e", "item_id": "i1", "content_index": 0}
    error = {"type": "server_error", "code": "audio_unintelligible", "message": "they said x"}
    with structlog.testing.capture_logs() as logs:
        facts = await facts_of(nursery, began("i1"), *stopped("i1"), {**failed, "error": error})
    assert facts == [VoiceBegan(), PerhapsOver(), TurnOver()]
    (told,) = [entry for entry in logs if entry["event"] == "item_not_transcribed"]
    assert told["code"] == "audio_unintelligible"
    assert "they said" not in str(logs)


async def test_a_commit_by_hand_ends_the_stretch(autojump_clock, nursery):
    """Asked for the end of a turn, the vendor gives the stretch another name."""
    vendor = FakeOpenAI(
        nursery,
        [
            began("i1"),
            after("input_audio_buffer.commit"),
            buffer("committed", "i2"),
            words("i2", "a latte"),
        ],
    )
    async with ear_of(vendor).open_stream() as stream:
        assert await stream.receive() == VoiceBegan()
        await stream.end_turn()
        rest = [await stream.receive() for _ in range(3)]
    assert rest == [PerhapsOver(), WordsHeard("a latte", final=True), TurnOver()]
    nursery.cancel_scope.cancel()


async def test_the_session_is_asked_for(autojump_clock, nursery):
    """The address, the key and the settings reach the vendor, and audio at its own rate."""
    vendor = FakeOpenAI(nursery, [])
    ear = ear_of(vendor, language="en", keywords=["latte"], noise_reduction="near_field")
    async with ear.open_stream() as stream:
        for start in range(0, len(SECOND), 640):
            await stream.send(SECOND[start : start + 640])
        await trio.sleep(1)
    (request,) = vendor.requests
    assert request.path == "/v1/realtime?intent=transcription"
    assert request.headers["Authorization"] == "Bearer s3cret"
    session = vendor.lines[0][0]["session"]
    assert session == {
        "type": "transcription",
        "audio": {
            "input": {
                "format": {"type": "audio/pcm", "rate": 24_000},
                "transcription": {
                    "model": "gpt-transcribe",
                    "language": "en",
                    "keywords": ["latte"],
                },
                "turn_detection": {"type": "semantic_vad"},
                "noise_reduction": {"type": "near_field"},
            }
        },
    }
    assert len(vendor.audio(0)) == pytest.approx(1.5 * len(SECOND), rel=0.06)
    samples = memoryview(vendor.audio(0)).cast("h")[12_000:12_100]
    assert list(samples) == pytest.approx([0x1000] * 100, abs=2)
    nursery.cancel_scope.cancel()


async def test_a_lost_line_hears_the_turn_again(autojump_clock, nursery):
    """What a turn has said so far goes to the next line, and its words are not told twice."""
    script = [began("i1"), after("input_audio_buffer.append", 10), lose]
    vendor = FakeOpenAI(nursery, script, [began("i1"), *stopped("i1"), words("i1", "a latte")])
    async with ear_of(vendor).open_stream() as stream:
        assert await stream.receive() == VoiceBegan()
        await stream.send(SECOND)
        assert await stream.receive() == EarRestarted()
        rest = [await stream.receive() for _ in range(4)]
    assert rest[-1] == TurnOver()
    assert len(vendor.audio(1)) >= 1.3 * len(SECOND)
    nursery.cancel_scope.cancel()


def error_of(code: str, kind: str = "invalid_request_error", **more: Any) -> dict[str, Any]:
    """Return an error message."""
    error = {"type": kind, "code": code, "message": "no", "param": None, **more}
    return {"type": "error", "event_id": "e", "error": error}


async def test_a_passing_error_costs_nothing(autojump_clock, nursery):
    """An empty commit is an error that leaves the session as it is."""
    empty = error_of("input_audio_buffer_commit_empty", event_id=None)
    facts = await facts_of(nursery, empty, began("i1"), *stopped("i1"), words("i1", "hi"))
    assert facts[-1] == TurnOver()


async def test_a_session_that_has_expired_is_opened_anew(autojump_clock, nursery):
    """The vendor ends each session after an hour; another one follows."""
    expired = error_of("session_expired")
    vendor = FakeOpenAI(nursery, [expired], [began("i1"), *stopped("i1"), words("i1", "hi")])
    async with ear_of(vendor).open_stream() as stream:
        facts = [await stream.receive() for _ in range(4)]
    assert facts[-1] == TurnOver()
    nursery.cancel_scope.cancel()


async def test_a_session_that_is_refused_is_an_error(autojump_clock, nursery):
    """An unknown model is not retried."""
    refused = error_of("invalid_model", event_id="configure")
    vendor = FakeOpenAI(nursery, [refused])
    async with ear_of(vendor).open_stream() as stream:
        with pytest.raises(VendorError, match="invalid_model") as caught:
            await stream.receive()
    assert not caught.value.retryable
    assert "s3cret" not in str(caught.value)
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("options", "detection"),
    [
        ({}, {"type": "semantic_vad"}),
        ({"eagerness": "high"}, {"type": "semantic_vad", "eagerness": "high"}),
        ({"turns": "silence"}, {"type": "server_vad"}),
        (
            {"turns": "silence", "silence_s": 0.3, "threshold": 0.6},
            {"type": "server_vad", "silence_duration_ms": 300, "threshold": 0.6},
        ),
        ({"turns": "none"}, None),
    ],
)
async def test_who_decides_the_turn_is_a_setting(autojump_clock, nursery, options, detection):
    """The vendor's model, its silence, or nobody there."""
    vendor = FakeOpenAI(nursery, [])
    async with ear_of(vendor, **options).open_stream():
        await trio.sleep(1)
    assert vendor.lines[0][0]["session"]["audio"]["input"]["turn_detection"] == detection
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "options", [{"silence_s": 1}, {"turns": "silence", "eagerness": "low"}, {"turns": "vad"}]
)
def test_settings_that_do_not_fit_are_refused(options):
    """A setting of another way to end turns is an error where the ear is made."""
    with pytest.raises(ValueError, match="turns="):
        OpenAIEar(api_key="k", **options)


# --- in a call ------------------------------------------------------------------------------------


class Detector:
    """A detector for which everything that is not zero is a voice."""

    frame_samples = 512

    def probability(self, frame: bytes) -> float:
        """Return 1 for a sound, else 0."""
        return 1.0 if any(frame) else 0.0


async def test_without_its_detection_ours_ends_the_stretch(autojump_clock, nursery):
    """A model that streams words and detects no turns is asked for them when our detector stops."""
    vendor = FakeOpenAI(
        nursery,
        [
            after("input_audio_buffer.append", 5),
            delta("i1", "a large"),
            after("input_audio_buffer.commit"),
            buffer("committed", "i1"),
            words("i1", "a large latte"),
        ],
    )
    ear = ear_of(vendor, model="gpt-live-transcribe", turns="none")
    turns = TurnTaking(TurnSettings(endpointing=ModelEndpointing()))

    async def answer(call: Call) -> None:
        StreamingSpeech(ear, vad=Detector, turns=turns).attach(call)
        call.converse(ChatNode(ScriptedModel("Sure.")))

    async with open_call(answer) as caller:
        for number in range(150):
            caller.publish(UserAudio((b"\x00\x10" if number < 60 else b"\0\0") * 320))
            await trio.sleep(0.02)
        assert [e.content for e in caller.events(UserTranscriptionReceived) if e.final] == [
            "a large latte"
        ]
        assert len(caller.events(UserStoppedSpeaking)) == 1
        await caller.quiet()
        assert caller.heard == "Sure."
    commits = [m for m in vendor.lines[0] if m["type"] == "input_audio_buffer.commit"]
    assert len(commits) == 1
    nursery.cancel_scope.cancel()


async def test_an_ear_that_detects_nothing_wants_a_detector(autojump_clock, nursery):
    """Such an ear needs a detector of ours: without one, the constructor raises."""
    ear = ear_of(FakeOpenAI(nursery, []), turns="none")
    with pytest.raises(ValueError, match="vad="):
        async with open_call(lambda call: None) as caller:
            StreamingSpeech(ear).attach(caller.call)
    nursery.cancel_scope.cancel()


@asynccontextmanager
async def open_checked(fault: Any) -> AsyncIterator[OpenAIEar]:
    """Open the ear in front of a vendor that hears a latte on each line, and commits as asked."""
    hears = after("input_audio_buffer.append", 5)
    asked = after("input_audio_buffer.commit")
    script = [hears, began("i1"), asked, buffer("committed", "i1"), words("i1", "a latte")]
    async with trio.open_nursery() as nursery:
        yield ear_of(FakeOpenAI(nursery, *[script] * 500))
        nursery.cancel_scope.cancel()


@pytest.mark.proof
def test_the_ear_keeps_its_promises_wherever_it_is_cut():
    """Cancelled at each step and left early it works on, and nothing is left."""
    report = check_ear(open_checked, points=20, only=["cancel", "cancel_opening", "leave_early"])
    assert len(report.passed) == 4
