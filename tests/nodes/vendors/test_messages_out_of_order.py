"""Messages of vendors' ears that come late, in binary, or as errors that pass."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from bargein.speech import TurnOver, VoiceBegan, WordsHeard
from bargein.vendors import VendorError
from bargein.websocket import WebSocket
from tests.nodes.vendors.test_ears import CASES, Vendor, ear_of


def results(text: str, start_s: float, end_s: float, **more: Any) -> dict[str, Any]:
    words = [{"word": word, "start": start_s, "end": end_s} for word in text.split()]
    return {
        "type": "Results",
        "start": start_s,
        "duration": end_s - start_s,
        "is_final": False,
        "channel": {"alternatives": [{"transcript": text, "words": words}]},
        **more,
    }


async def heard_by(name: str, nursery: trio.Nursery, *lines: list[Any]) -> list[Any]:
    """Return the facts that an ear reports of what its vendor sends."""
    vendor = Vendor(nursery, *lines)
    heard = []
    async with ear_of(CASES[name], vendor).open_stream() as stream:
        with trio.move_on_after(8):
            while True:
                heard.append(await stream.receive())
    nursery.cancel_scope.cancel()
    return heard


async def test_the_end_of_the_last_utterance_ends_no_other(autojump_clock, nursery):
    """Nova's ``UtteranceEnd`` comes a second late, when the caller may be speaking again."""
    heard = await heard_by(
        "DeepgramNova",
        nursery,
        [
            {"type": "SpeechStarted", "timestamp": 0.1},
            results("hello there", 0.1, 1.0, is_final=True, speech_final=True),
            {"type": "SpeechStarted", "timestamp": 1.6},
            {"type": "UtteranceEnd", "last_word_end": 1.0},
            results("a latte", 1.6, 2.5, is_final=True, speech_final=True),
        ],
    )
    assert [type(fact) for fact in heard] == [VoiceBegan, WordsHeard, TurnOver] * 2
    assert [fact.text for fact in heard if isinstance(fact, WordsHeard)] == [
        "hello there",
        "a latte",
    ]


async def test_final_words_behind_the_end_are_no_further_turn(autojump_clock, nursery):
    """Final words that come after Nova's ``UtteranceEnd`` for them begin no turn."""
    heard = await heard_by(
        "DeepgramNova",
        nursery,
        [
            {"type": "SpeechStarted", "timestamp": 0.1},
            results("hello there", 0.1, 1.0),
            {"type": "UtteranceEnd", "last_word_end": 1.0},
            results("hello there", 0.1, 1.4, is_final=True, speech_final=True),
        ],
    )
    assert [type(fact) for fact in heard] == [VoiceBegan, WordsHeard, TurnOver]


@pytest.mark.parametrize("name", CASES)
async def test_json_in_binary_messages_is_read(autojump_clock, nursery, name):
    """A vendor that sends its JSON in binary frames is understood like any other."""
    case = CASES[name]

    async def send_all(socket: WebSocket, line: Any) -> None:
        for message in case.messages:
            await socket.send(json.dumps(message).encode())

    vendor = Vendor(nursery, [send_all])
    async with ear_of(case, vendor).open_stream() as stream:
        assert [await stream.receive() for _ in case.facts] == case.facts
    nursery.cancel_scope.cancel()


PASSING = {
    "CartesiaEar": [
        {"type": "error", "status_code": 429, "title": "Too many", "message": "no"},
        {"type": "error", "status_code": 500, "error_code": "internal_error", "message": "no"},
    ],
    "ElevenLabsEar": [
        {"message_type": kind, "error": "no"}
        for kind in (
            "session_time_limit_exceeded",
            "transcriber_error",
            "insufficient_audio_activity",
        )
    ],
}


@pytest.mark.parametrize(
    ("name", "error"), [(name, error) for name, errors in PASSING.items() for error in errors]
)
async def test_an_error_that_passes_costs_a_line(autojump_clock, nursery, name, error):
    """Behind an error that passes, another line is opened, and hears."""
    vendor = Vendor(nursery, [error], [*CASES[name].messages])
    async with ear_of(CASES[name], vendor).open_stream() as stream:
        assert [await stream.receive() for _ in CASES[name].facts] == CASES[name].facts
    assert len(vendor.lines) == 2
    nursery.cancel_scope.cancel()


async def test_a_throttled_commit_costs_nothing(autojump_clock, nursery):
    """ElevenLabs refuses a commit behind too little sound; its session goes on."""
    case = CASES["ElevenLabsEar"]
    error = {"message_type": "commit_throttled", "error": "no"}
    vendor = Vendor(nursery, [error, *case.messages])
    async with ear_of(case, vendor).open_stream() as stream:
        assert [await stream.receive() for _ in case.facts] == case.facts
    assert len(vendor.lines) == 1
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("DeepgramFlux", {"type": "Error", "code": "ASR_PAYMENT_REQUIRED", "description": "no"}),
        ("DeepgramNova", {"type": "Error", "code": "INVALID_AUTH", "description": "no"}),
        ("AssemblyAIEar", {"type": "Error", "error_code": 4001, "error": "Not Authorized"}),
        ("AssemblyAIEar", {"type": "Error", "error_code": 4002, "error": "Insufficient Funds"}),
        ("ElevenLabsEar", {"message_type": "quota_exceeded", "error": "no"}),
        ("CartesiaEar", {"type": "error", "status_code": 402, "title": "Pay", "message": "no"}),
    ],
)
async def test_a_wrong_key_and_no_credit_end_the_ear_at_once(autojump_clock, nursery, name, error):
    """What no other line mends is raised at the first line."""
    vendor = Vendor(nursery, [error], [])
    async with ear_of(CASES[name], vendor).open_stream() as stream:
        with pytest.raises(VendorError) as told:
            await stream.receive()
    assert not told.value.retryable
    assert len(vendor.lines) == 1
    nursery.cancel_scope.cancel()
