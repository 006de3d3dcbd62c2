"""The contexts of a streaming voice: their style, and what becomes of them after a cut."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

import trio

from bargein import App, ReasoningNode
from bargein.events import AgentHandoff, AgentResponse
from bargein.speech import ChangeVoice, Speech, VoiceStyle
from bargein.testing import open_call

from .failing import WordEar, WordVoice

SENTENCE = "Alpha bravo charlie delta echo foxtrot. "


class CountingVoice(WordVoice):
    """Counts the contexts that are open."""

    open_now = 0

    def __init__(self) -> None:
        super().__init__()
        self.styles: list[VoiceStyle] = []

    @asynccontextmanager
    async def open_context(self, style: VoiceStyle) -> Any:
        self.styles.append(style)
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
    app = App(answer, speech=Speech(WordEar(), voice, fillers=None))
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


async def test_text_keeps_the_style_of_the_moment_it_was_said(autojump_clock):
    """An agent that takes over with a voice of its own does not lend it to the words before."""

    async def answer(call):
        for name in ("desk", "shop"):
            place = call.bridge(name=name)
            style = ChangeVoice(VoiceStyle(voice=name))
            place.on(AgentHandoff, target=name).map(lambda _, p=place, s=style: p.publish(s))
        call.hand_over("desk")
        call.say("I put you through")  # no full stop, so no clause of it is ready yet
        call.hand_over("shop")
        call.say("The shop. ")

    voice = CountingVoice()
    app = App(answer, speech=Speech(WordEar(), voice, fillers=None))
    async with open_call(app, own_speech=True) as caller:
        await caller.quiet()
    assert sorted(style.voice or "" for style in voice.styles) == ["desk", "shop"]
