"""OpenAI's ear against a fake that speaks the vendor's messages, in virtual time."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import structlog.testing
import trio

from bargein import Call, ChatNode
from bargein.ears import OpenAIEar
from bargein.events import UserAudio, UserStoppedSpeaking, UserTranscriptionReceived
from bargein.fakes import FakeLine, FakeVendor
from bargein.speech import (
    EarFact,
    EarRestarted,
    PerhapsOver,
    Speech,
    TurnOver,
    VoiceBegan,
    WentOn,
    WordsHeard,
)
from bargein.testing import ScriptedModel, open_call
from bargein.user_turns import ModelEndpointing, TurnSettings, TurnTaking
from bargein.vendors import SessionLimits, VendorError

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


class ScriptedVendor(FakeVendor):
    """Sends what its scripts say, one a line, and keeps what comes."""

    def __init__(self, *scripts: list[Any]) -> None:
        super().__init__()
        self._scripts = [*scripts]
        self.newest: FakeLine | None = None
        self.messages: list[list[dict[str, Any]]] = []  # of each line

    async def talk(self, line: FakeLine) -> None:
        self.newest = line
        self.messages.append([])
        for act in (*self._scripts.pop(0), after("the end of the line")):
            if callable(act):
                await act(line, self.messages[-1])
            else:
                await line.say(act)

    def audio(self, line: int) -> bytes:
        """Return the audio of a line."""
        sent = (m["audio"] for m in self.messages[line] if m["type"].endswith("append"))
        return b"".join(map(base64.b64decode, sent))


def after(message_type: str, count: int = 1) -> Callable[[FakeLine, Any], Awaitable[None]]:
    """Wait for so many messages of a type."""

    async def wait(line: FakeLine, messages: list[dict[str, Any]]) -> None:
        while sum(m["type"] == message_type for m in messages) < count:
            messages.append(json.loads(await line.receive()))

    return wait


async def lose(line: FakeLine, messages: Any) -> None:
    """Lose the line."""
    line.cut()


def ear_of(vendor: FakeVendor, **options: Any) -> OpenAIEar:
    """Return the ear in front of a fake."""
    limits = SessionLimits(attempts=2)
    return OpenAIEar(
        api_key="s3cret", base_url="ws://fake/v1", dial=vendor.dial, limits=limits, **options
    )


async def facts_of(*script: Any, **options: Any) -> list[EarFact]:
    """Return all facts that the ear reports for a vendor's messages."""
    facts: list[EarFact] = []
    async with (
        ScriptedVendor([*script]).open() as vendor,
        ear_of(vendor, **options).open_stream() as stream,
    ):
        with trio.move_on_after(1):
            while True:
                facts.append(await stream.receive())
    return facts


async def test_a_stretch_of_voice_is_a_turn(autojump_clock):
    """Words come once the stretch is committed; interim words do not count as a voice."""
    sure = [{"token": "a", "bytes": [], "logprob": -0.1}, {"token": "b", "logprob": -0.3}]
    assert await facts_of(
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


async def test_who_goes_on_before_the_words_are_known_is_not_done(autojump_clock):
    """A stretch that begins before the last one is transcribed is a second segment of its turn."""
    assert await facts_of(
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


async def test_words_may_come_in_any_order(autojump_clock):
    """The words of the second stretch may be known first; the turn waits for both."""
    facts = await facts_of(
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


async def test_what_comes_late_of_a_turn_begins_no_other(autojump_clock):
    """Words, and the end of a stretch, that come once the turn is over are dropped."""
    facts = await facts_of(
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


async def test_a_start_behind_its_stop_starts_nothing(autojump_clock):
    """A stretch whose start is reported after its end is over once its words are known."""
    facts = await facts_of(*stopped("i1"), began("i1"), words("i1", "a large latte"))
    assert facts[-1] == TurnOver()


async def test_what_cannot_be_transcribed_ends_the_turn_without_words(autojump_clock):
    """A failure of the recogniser is logged by its code, and nobody waits for words."""
    failed = {"type": HEARS + "failed", "event_id": "e", "item_id": "i1", "content_index": 0}
    error = {"type": "server_error", "code": "audio_unintelligible", "message": "they said x"}
    with structlog.testing.capture_logs() as logs:
        facts = await facts_of(began("i1"), *stopped("i1"), {**failed, "error": error})
    assert facts == [VoiceBegan(), PerhapsOver(), TurnOver()]
    (told,) = [entry for entry in logs if entry["event"] == "item_not_transcribed"]
    assert told["code"] == "audio_unintelligible"
    assert "they said" not in str(logs)


async def test_a_commit_by_hand_ends_the_stretch(autojump_clock):
    """Asked for the end of a turn, the vendor gives the stretch another name."""
    vendor = ScriptedVendor(
        [
            began("i1"),
            after("input_audio_buffer.commit"),
            buffer("committed", "i2"),
            words("i2", "a latte"),
        ],
    )
    async with vendor.open(), ear_of(vendor).open_stream() as stream:
        assert await stream.receive() == VoiceBegan()
        await stream.end_turn()
        rest = [await stream.receive() for _ in range(3)]
    assert rest == [PerhapsOver(), WordsHeard("a latte", final=True), TurnOver()]


async def test_the_session_is_asked_for(autojump_clock):
    """The address, the key and the settings reach the vendor, and audio at its own rate."""
    vendor = ScriptedVendor([])
    ear = ear_of(vendor, language="en", keywords=["latte"], noise_reduction="near_field")
    async with vendor.open(), ear.open_stream() as stream:
        for start in range(0, len(SECOND), 640):
            await stream.send(SECOND[start : start + 640])
        await trio.sleep(1)
    assert vendor.newest is not None
    assert vendor.newest.path == "/v1/realtime?intent=transcription"
    assert vendor.newest.headers["Authorization"] == "Bearer s3cret"
    session = vendor.messages[0][0]["session"]
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


async def test_a_lost_line_hears_the_turn_again(autojump_clock):
    """What a turn has said so far goes to the next line, and its words are not told twice."""
    script = [began("i1"), after("input_audio_buffer.append", 10), lose]
    vendor = ScriptedVendor(script, [began("i1"), *stopped("i1"), words("i1", "a latte")])
    async with vendor.open(), ear_of(vendor).open_stream() as stream:
        assert await stream.receive() == VoiceBegan()
        await stream.send(SECOND)
        assert await stream.receive() == EarRestarted()
        rest = [await stream.receive() for _ in range(4)]
    assert rest[-1] == TurnOver()
    assert len(vendor.audio(1)) >= 1.3 * len(SECOND)


def error_of(code: str, kind: str = "invalid_request_error", **more: Any) -> dict[str, Any]:
    """Return an error message."""
    error = {"type": kind, "code": code, "message": "no", "param": None, **more}
    return {"type": "error", "event_id": "e", "error": error}


async def test_a_passing_error_costs_nothing(autojump_clock):
    """An empty commit is an error that leaves the session as it is."""
    empty = error_of("input_audio_buffer_commit_empty", event_id=None)
    facts = await facts_of(empty, began("i1"), *stopped("i1"), words("i1", "hi"))
    assert facts[-1] == TurnOver()


async def test_a_session_that_has_expired_is_opened_anew(autojump_clock):
    """The vendor ends each session after an hour; another one follows."""
    expired = error_of("session_expired")
    vendor = ScriptedVendor([expired], [began("i1"), *stopped("i1"), words("i1", "hi")])
    async with vendor.open(), ear_of(vendor).open_stream() as stream:
        facts = [await stream.receive() for _ in range(4)]
    assert facts[-1] == TurnOver()


async def test_a_session_that_is_refused_is_an_error(autojump_clock):
    """An unknown model is not retried."""
    refused = error_of("invalid_model", event_id="configure")
    vendor = ScriptedVendor([refused])
    async with vendor.open(), ear_of(vendor).open_stream() as stream:
        with pytest.raises(VendorError, match="invalid_model") as caught:
            await stream.receive()
    assert not caught.value.retryable
    assert "s3cret" not in str(caught.value)


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
async def test_who_decides_the_turn_is_a_setting(autojump_clock, options, detection):
    """The vendor's model, its silence, or nobody there."""
    vendor = ScriptedVendor([])
    async with vendor.open(), ear_of(vendor, **options).open_stream():
        await trio.sleep(1)
    assert vendor.messages[0][0]["session"]["audio"]["input"]["turn_detection"] == detection


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


async def test_without_its_detection_ours_ends_the_stretch(autojump_clock):
    """A model that streams words and detects no turns is asked for them when our detector stops."""
    vendor = ScriptedVendor(
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
        Speech(ear, vad=Detector, turns=turns).attach(call)
        call.converse(ChatNode(ScriptedModel("Sure.")))

    async with vendor.open(), open_call(answer) as caller:
        for number in range(150):
            caller.publish(UserAudio((b"\x00\x10" if number < 60 else b"\0\0") * 320))
            await trio.sleep(0.02)
        assert [e.content for e in caller.events(UserTranscriptionReceived) if e.final] == [
            "a large latte"
        ]
        assert len(caller.events(UserStoppedSpeaking)) == 1
        await caller.quiet()
        assert caller.heard == "Sure."
    commits = [m for m in vendor.messages[0] if m["type"] == "input_audio_buffer.commit"]
    assert len(commits) == 1


async def test_an_ear_that_detects_nothing_wants_a_detector(autojump_clock):
    """Such an ear needs a detector of ours: without one, the constructor raises."""
    ear = ear_of(ScriptedVendor(), turns="none")
    with pytest.raises(ValueError, match="vad="):
        async with open_call(lambda call: None) as caller:
            Speech(ear).attach(caller.call)
