"""Which environment variables the tests with a real key want, and what several of them do."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import trio

from bargein.speech import EspeakVoice, TextSaid, TurnOver, VoiceStyle, WordsHeard, resample

WANTED = {
    "test_anthropic.py": ("ANTHROPIC_API_KEY", "ANTHROPIC_MODEL"),
    "test_assemblyai.py": ("ASSEMBLYAI_API_KEY",),
    "test_cartesia.py": ("CARTESIA_API_KEY", "CARTESIA_VOICE"),
    "test_deepgram.py": ("DEEPGRAM_API_KEY",),
    "test_elevenlabs.py": ("ELEVENLABS_API_KEY", "ELEVENLABS_VOICE"),
    "test_openai.py": ("OPENAI_API_KEY",),
}
"""What each file needs; a ``..._VOICE`` is the vendor's id of a voice."""

SENTENCE = "I would like a large latte with oat milk, please."
WORDS = ("large", "latte", "milk")
"""What an ear has to understand of it."""

LIMIT_S = 60.0


def missing(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the files whose keys are not there."""
    return [
        file for file, names in WANTED.items() if not all(environment.get(name) for name in names)
    ]


async def said_by(voice: Any, text: str = SENTENCE) -> bytes:
    """Return what a voice that streams makes of a text, at 16 kHz."""
    pcm = b""
    with trio.fail_after(LIMIT_S):
        async with voice.open(), voice.open_context(VoiceStyle()) as context:
            await context.send(text)
            await context.flush()
            await context.end()
            while not isinstance(piece := await context.receive(), TextSaid | None):
                pcm += piece.pcm
    assert len(pcm) > voice.sample_rate_hz  # half a second at least
    return resample(pcm, voice.sample_rate_hz, 16_000)


async def said_by_espeak(text: str = SENTENCE) -> bytes:
    """Return a text as a voice of ours says it, at 16 kHz."""
    async with EspeakVoice().open() as voice:
        pcm = b"".join([piece.pcm async for piece in voice.synthesize(text)])
        return resample(pcm, voice.sample_rate_hz, 16_000)


async def heard_by(ear: Any, pcm: bytes) -> str:
    """Return the words that an ear makes of a sound, played at its own pace."""
    words: dict[int, str] = {}
    with trio.fail_after(LIMIT_S):
        async with ear.open_stream() as stream, trio.open_nursery() as nursery:
            nursery.start_soon(_play, stream, pcm)
            while True:
                fact = await stream.receive()
                if isinstance(fact, WordsHeard):
                    words[fact.segment] = fact.text
                elif isinstance(fact, TurnOver):
                    if fact.text is not None:
                        words = {0: fact.text}
                    break
            nursery.cancel_scope.cancel()
    return " ".join(words.values()).lower()


async def _play(stream: Any, pcm: bytes) -> None:
    silence = bytes(16_000)
    sound = silence + pcm + silence * 20
    for start in range(0, len(sound), 640):
        await stream.send(sound[start : start + 640])
        await trio.sleep(0.02)


def assert_understood(words: str) -> None:
    """Check that an ear has understood the sentence."""
    assert all(word in words for word in WORDS), words


async def answer_of(model: Any) -> str:
    """Return what a chat model answers to a simple question."""
    question = [{"role": "user", "content": "Say the word 'coffee' and nothing else."}]
    with trio.fail_after(LIMIT_S):
        async with model.open(), model.stream(question) as answer:
            return "".join([getattr(piece, "text", "") async for piece in answer])
