"""A voice that says each text at once, and nothing else of a speech stack."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from bargein import Call, Message
from bargein.events import (
    AgentAudio,
    AgentAudioComplete,
    AgentResponse,
    AgentTextComplete,
    WordTiming,
)

RATE_HZ = 24_000


class PlainVoice:
    """Says each text as the audio that a function makes of it."""

    def __init__(
        self,
        audio_of: Callable[[str], bytes],
        words_of: Callable[[str], tuple[WordTiming, ...]] = lambda text: (),
    ) -> None:
        """Keep both functions.

        Args:
            audio_of: Returns the PCM of a text, at 24 kHz.
            words_of: Returns the words of a text with their times.
        """
        self._audio_of = audio_of
        self._words_of = words_of

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        yield

    def attach(self, call: Call) -> None:
        def say(message: Message) -> AgentAudio | None:
            utterance = call.answers.utterance_of(message)
            if utterance is None:
                return None  # of an answer that nobody hears
            text = message.event.content
            pcm, words = self._audio_of(text), self._words_of(text)
            return AgentAudio(pcm, RATE_HZ, text, words, utterance=utterance.number)

        def finish(message: Message) -> AgentAudioComplete:
            return AgentAudioComplete(utterance=message.event.utterance)

        voice = call.bridge(name="voice", is_agent=False)
        voice.on(AgentResponse).map(say).broadcast()
        voice.on(AgentTextComplete).map(finish).broadcast()
