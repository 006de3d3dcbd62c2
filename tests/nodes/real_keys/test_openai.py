"""OpenAI's real services: a voice and an ear, a chat, and a call with a model that speaks."""

from __future__ import annotations

import trio

from bargein import App, Call, OpenAIChat
from bargein.ears import OpenAIEar
from bargein.events import UserAudio, UserTranscriptionReceived
from bargein.realtime import OpenAIRealtime, RealtimeNode
from bargein.speech import Speech
from bargein.testing import open_call
from bargein.voices import OpenAIVoice

from .keys import answer_of, assert_understood, heard_by, said_by, said_by_espeak


async def test_the_ear_understands_the_voice():
    """What the voice says the ear understands."""
    assert_understood(await heard_by(OpenAIEar(), await said_by(OpenAIVoice())))


async def test_a_chat():
    """The model answers."""
    model = OpenAIChat("gpt-4o-mini")
    assert "coffee" in (await answer_of(model)).lower()


async def test_a_call_with_a_model_that_speaks():
    """The model hears a sentence, writes it down, and answers aloud with a text of what it says."""
    model = OpenAIRealtime()

    async def answer(call: Call) -> None:
        call.converse(RealtimeNode(model, "You sell coffee. Answer in five words."))

    pcm = await said_by_espeak()
    app = App(answer, speech=Speech())
    with trio.fail_after(60):
        async with open_call(app, own_speech=True) as caller:
            await trio.sleep(2)
            sound = bytes(16_000) + pcm + bytes(64_000)
            for start in range(0, len(sound), 640):
                caller.publish(UserAudio(sound[start : start + 640]))
                await trio.sleep(0.02)
            await caller.quiet()
            said = [e.content for e in caller.events(UserTranscriptionReceived) if e.final]
            assert_understood(" ".join(said).lower())
            assert caller.heard.strip()
