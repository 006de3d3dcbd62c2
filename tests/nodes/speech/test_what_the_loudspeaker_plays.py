"""What the loudspeaker plays, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import trio

from bargein import App
from bargein.events import AgentAudio, AgentAudioComplete, AgentResponse, AgentTextComplete
from bargein.speech import HeardAgent

RATE_HZ = 8000
WINDOW_S = 0.032
LOOKAHEAD_S = 0.064
"""How much earlier than known a sample may have been played."""


class Line:
    """A caller's side that plays on time and can stand still."""

    audio = True
    sample_rate_hz = RATE_HZ

    def send(self, message):
        pass

    def play(self, utterance, pcm):
        pass

    def clear(self, utterance, reason):
        pass

    def hold(self, on):
        pass


class Ramp:
    """Says everything as three seconds in which a sample tells its number, in units of 4."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        yield

    def attach(self, call):
        self.call = call
        bridge = call.bridge(name="voice", is_agent=False)
        bridge.on(AgentResponse).map(self.say).broadcast()
        bridge.on(AgentTextComplete).map(self.finish).broadcast()
        self.heard = HeardAgent(call.bridge(name="ears", is_agent=False))

    def say(self, message):
        number = self.call.answers.utterance_of(message).number
        pcm = (np.arange(3 * RATE_HZ) // 4 + 1).astype("<i2").tobytes()
        return AgentAudio(pcm, RATE_HZ, message.event.content, utterance=number)

    def finish(self, message):
        return AgentAudioComplete(utterance=message.event.utterance)

    def hear(self):
        """Return where in what is said the next stretch ends, in s; None if it is silent."""
        stretch = self.heard.next(WINDOW_S)
        assert len(stretch) == WINDOW_S * RATE_HZ
        return round(float(stretch[-1]) * 32768) * 4 / RATE_HZ if stretch.any() else None


@asynccontextmanager
async def speaking():
    voice = Ramp()
    async with App(lambda call: call.say("Hello there."), speech=voice).open_call(Line()) as call:
        yield voice, call


async def test_each_stretch_is_what_plays_at_that_moment(autojump_clock):
    """The stretches follow the player, without a gap, a little ahead of what is known."""
    async with speaking() as (voice, _):
        await trio.sleep(0.5)
        for step in range(30):
            end_s = voice.hear()
            assert abs(end_s - (0.5 + step * WINDOW_S + LOOKAHEAD_S)) < 0.002
            await trio.sleep(WINDOW_S)


async def test_frames_that_come_in_bursts_get_stretches_in_a_row(autojump_clock):
    """Two windows in one moment are two stretches, and not the same one twice."""
    async with speaking() as (voice, _):
        await trio.sleep(0.5)
        ends_s = []
        for _ in range(10):
            ends_s += [voice.hear(), voice.hear()]
            await trio.sleep(2 * WINDOW_S)
        steps = np.diff(ends_s)
        assert np.allclose(steps, WINDOW_S, atol=0.002)


async def test_nothing_plays_while_the_voice_is_held(autojump_clock):
    """A player that stands still is silent, and goes on where it stood."""
    async with speaking() as (voice, call):
        await trio.sleep(0.5)
        before_s = voice.hear()
        call.hold_speech("test")
        await trio.sleep(1.0)
        assert [voice.hear() for _ in range(3)] == [None] * 3
        call.release_speech("test")
        await trio.sleep(WINDOW_S)
        assert abs(voice.hear() - before_s - WINDOW_S) < 0.002


async def test_what_is_over_is_forgotten(autojump_clock):
    """After an utterance there is silence."""
    async with speaking() as (voice, _):
        await trio.sleep(4)
        assert voice.hear() is None
