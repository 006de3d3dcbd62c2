"""One speech stack: any ear, with or without a detector of ours and what belongs to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

import bargein
from bargein import Call
from bargein.events import UserAudio, UserTranscriptionReceived, VoiceHint, VoiceStarted
from bargein.speech import LocalSpeech, Speech, TurnOver, WordsHeard
from bargein.testing import open_call
from tests.nodes.speech.hearing import SILENCE, VOICE, Engines, LoudIsSpeech, Says, send
from tests.nodes.speech.test_streaming_ears import ScriptedEar


class Halves:
    """A noise filter that makes everything softer, and counts what it cleaned."""

    def __init__(self) -> None:
        self.cleaned = 0

    def clean(self, pcm: bytes) -> bytes:
        self.cleaned += len(pcm)
        return pcm.replace(b"\x10", b"\x08")


def attached(**options: Any) -> Callable[[Call], Any]:
    async def answer(call: Call) -> None:
        Speech(fillers=None, **options).attach(call)

    return answer


async def test_a_streaming_ear_hears_what_the_filter_leaves(autojump_clock: object) -> None:
    """The sound is cleaned once, for our detector and for the ear."""
    ear, cleans = ScriptedEar(), Halves()
    answer = attached(ear=ear, vad=LoudIsSpeech, noise_filter=lambda: cleans)
    async with open_call(answer) as caller:
        await send(caller, SILENCE, 0.32)
        await send(caller, VOICE, 0.32)
        await trio.sleep(0.1)
        assert caller.events(VoiceStarted)
    assert cleans.cleaned == 2 * 10 * len(VOICE)
    assert (
        bytes(ear.heard[: 20 * len(VOICE)]) == SILENCE * 10 + VOICE.replace(b"\x10", b"\x08") * 10
    )


async def test_a_streaming_ear_alone_hears_what_the_filter_leaves(autojump_clock: object) -> None:
    """It needs no detector of ours for that."""
    ear, cleans = ScriptedEar(), Halves()
    async with open_call(attached(ear=ear, noise_filter=lambda: cleans)) as caller:
        caller.publish(UserAudio(pcm=VOICE))
        await trio.sleep(0.1)
    assert bytes(ear.heard[: len(VOICE)]) == VOICE.replace(b"\x10", b"\x08")


async def test_sounds_are_classified_beside_a_streaming_ear(autojump_clock: object) -> None:
    """A voice gets hints from our classifiers, and its words and its end from the ear."""
    ear = ScriptedEar()
    async with open_call(
        attached(ear=ear, vad=LoudIsSpeech, sounds=[Says("acknowledgement", 0.95)])
    ) as caller:
        await send(caller, SILENCE, 0.32)
        await send(caller, VOICE, 0.64)
        ear.tell(WordsHeard("a latte"), TurnOver())
        await send(caller, SILENCE, 1.0)
        hints = {hint.kind for hint in caller.events(VoiceHint)}
        assert "acknowledgement" in hints
        assert {said.content for said in caller.events(UserTranscriptionReceived)} == {"a latte"}


async def test_a_recogniser_is_an_ear(autojump_clock: object) -> None:
    """With a detector, whole utterances go to it, and bargein's own rules end the turn."""
    engines = Engines()
    speech = attached(ear=engines, vad=LoudIsSpeech, end_of_turn=engines)
    async with open_call(speech) as caller:
        await send(caller, SILENCE, 0.32)
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 2.0)
        assert caller.events(UserTranscriptionReceived)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"ear": Engines()}, r"Speech\(ear=\) recognises what a detector finds: it wants a vad="),
        (
            {"sounds": [Says("acknowledgement", 0.95)]},
            r"Speech\(sounds=\) are asked when a voice begins: .* a vad=",
        ),
        ({"echo": True}, r"Speech\(echo=\) is looked for in each voice: it wants a vad="),
        ({"end_of_turn": Engines()}, r"Speech\(end_of_turn=\) is asked at pauses: it wants a vad"),
    ],
)
def test_what_needs_a_detector_asks_for_one(options: dict[str, Any], told: str) -> None:
    """When the stack is made, not in a call."""
    with pytest.raises(ValueError, match=told):
        Speech(**options)


def test_local_speech_is_a_preset() -> None:
    """It is a `Speech`, with any ear; the top module has both."""
    ear = ScriptedEar()
    local = LocalSpeech(ear=ear)
    assert isinstance(local, Speech)
    assert local.ear is ear
    assert bargein.Speech is Speech
    with pytest.raises(RuntimeError, match="LocalSpeech is not open"):
        local.attach(_Nobody())  # type: ignore[arg-type]  # a call that is never reached


class _Nobody:
    def bridge(self, **_: object) -> None:
        return None


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("StreamingSpeech", "StreamingSpeech is Speech now, with the same arguments"),
        ("StreamingEar", r"StreamingEar is Hearing\(bridge, ear\) now"),
        ("StreamingSTT", "StreamingSTT is Ear now: from bargein.speech import Ear"),
        ("WorkerPool", "WorkerPool is part of WorkerVoice now"),
        ("SpeechToText", "SpeechToText is Recogniser now: from bargein.speech import Recogniser"),
    ],
)
def test_an_old_name_says_the_new_one(name: str, says: str) -> None:
    """An import of what is gone says what to write."""
    with pytest.raises(ImportError, match=says):
        getattr(bargein.speech, name)


def test_a_name_that_never_was_is_an_attribute_error() -> None:
    """As in any module."""
    with pytest.raises(AttributeError, match="has no attribute 'Speach'"):
        bargein.speech.Speach  # type: ignore[attr-defined]  # noqa: B018
