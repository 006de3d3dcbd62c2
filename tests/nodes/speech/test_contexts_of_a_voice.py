"""What becomes of a voice's contexts when what they say is not to be heard any more."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

import trio

from bargein import App, ReasoningNode
from bargein.events import AgentResponse
from bargein.speech import StreamingSpeech
from bargein.testing import open_call

from .failing import WordEar, WordVoice

SENTENCE = "Alpha bravo charlie delta echo foxtrot. "


class CountingVoice(WordVoice):
    """Counts the contexts that are open."""

    open_now = 0

    @asynccontextmanager
    async def open_context(self, style: object) -> Any:
        self.open_now += 1
        try:
            async with super().open_context(style) as context:
                yield context
        finally:
            self.open_now -= 1


async def test_the_context_of_an_answer_in_the_background_is_closed(autojump_clock):
    """Its run goes on, but nobody will hear the rest, which a vendor would make and bill."""

    class Talks(ReasoningNode):
        async def process_context(self, context):
            yield AgentResponse(content=SENTENCE * 9)
            await trio.sleep(60)

    async def answer(call):
        call.converse(Talks())

    voice = CountingVoice()
    app = App(answer, speech=StreamingSpeech(WordEar(), voice, fillers=None))
    async with open_call(app, own_speech=True) as caller:
        await caller.says("hello", takes_s=1.0)
        await caller.at(2.0)
        assert voice.open_now == 1
        caller.call.handle.background()
        await trio.sleep(1.0)
        assert voice.open_now == 0
        said = len(voice.said)
        await trio.sleep(10)
        assert len(voice.said) == said < 54
