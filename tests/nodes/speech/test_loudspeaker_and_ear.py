"""An ear beside a loudspeaker, in virtual time: the microphone hears the agent, or not."""

from __future__ import annotations

from contextlib import asynccontextmanager

import numpy as np
import pytest
import trio

from bargein import App
from bargein.events import (
    AgentAudio,
    AgentAudioComplete,
    AgentResponse,
    AgentTextComplete,
    UserAudio,
    VoiceStarted,
)
from bargein.speech import (
    EchoDetector,
    EspeakVoice,
    HeardAgent,
    Hearing,
    SilenceOnly,
    SileroModel,
    Transcript,
    resample,
)

FRAME = 320
AGENT = "Of course, one large latte, and one blueberry muffin. We bake everything here."
CALLER = "What about a small tea?"


@pytest.fixture(scope="module")
def spoken():
    """Let both speak, once and on a real clock; mean loudness alike."""
    return trio.run(speak_both)


async def speak_both():
    spoken = []
    for name, text in (("en-us+m3", AGENT), ("en-us+f2", CALLER)):
        async with EspeakVoice(name, words_per_minute=150, pitch=62).open() as voice:
            pcm = b"".join([piece.pcm async for piece in voice.synthesize(text)])
            sound = np.frombuffer(resample(pcm, voice.sample_rate_hz, 16_000), "<i2").astype(float)
            spoken.append(sound * 2500 / np.sqrt(np.mean(sound[abs(sound) > 200] ** 2)))
    return spoken


class Line:
    """A caller's side that plays on time and keeps when a voice began."""

    audio = True
    sample_rate_hz = 16_000

    def __init__(self):
        self.started = []

    def send(self, message):
        if isinstance(message.event, VoiceStarted):
            self.started.append(message.at_s)

    def play(self, utterance, pcm):
        pass

    def clear(self, utterance, reason):
        pass


class Stack:
    """A voice that says everything with the same sound, and an ear without words."""

    def __init__(self, sound):
        self.pcm = sound.astype("<i2").tobytes()
        self.model = SileroModel()

    @asynccontextmanager
    async def open(self):
        yield

    def attach(self, call):
        self.call = call
        voice = call.bridge(name="voice", is_agent=False)
        voice.on(AgentResponse).map(self.say).broadcast()
        voice.on(AgentTextComplete).map(self.finish).broadcast()
        ears = call.bridge(name="ears", is_agent=False)
        echo = EchoDetector(HeardAgent(ears))
        Hearing(ears, self, vad=self.model.new_call(), end_of_turn=SilenceOnly(), echo=echo)

    def say(self, message):
        number = self.call.answers.utterance_of(message).number
        return AgentAudio(self.pcm, 16_000, message.event.content, utterance=number)

    def finish(self, message):
        return AgentAudioComplete(utterance=message.event.utterance)

    async def transcribe(self, pcm):
        await trio.lowlevel.checkpoint()
        return Transcript("")


async def starts(agent, microphone):
    """Return when voices begin, in seconds since the agent did."""
    line, stack = Line(), Stack(agent)
    async with App(lambda call: call.say("Hello."), speech=stack).open_call(line) as call:
        began_s = trio.current_time()
        pcm = np.clip(microphone, -32768, 32767).astype("<i2").tobytes()
        for start in range(0, len(pcm), 2 * FRAME):
            call.publish(UserAudio(pcm=pcm[start : start + 2 * FRAME]))
            await trio.sleep(0.02)
    return [at_s - began_s for at_s in line.started]


async def test_a_caller_with_headphones_is_heard_at_once(autojump_clock, spoken):
    """A caller who talks over an agent without an echo is heard within 0.2 s."""
    agent, caller = spoken
    first_s = int(np.argmax(abs(caller) > 1000)) / 16_000
    for silent_s in (0.7, 1.3, 1.9):
        microphone = np.concatenate([np.zeros(round(silent_s * 16_000)), caller])
        began = await starts(agent, microphone)
        assert began[0] - (silent_s + first_s) < 0.2


async def test_an_echo_begins_next_to_nothing(autojump_clock, spoken):
    """The agent's own voice, 20 dB weaker and 0.15 s late, counts as a caller at most once."""
    agent, _ = spoken
    microphone = np.concatenate([np.zeros(2400), agent / 10])
    assert len(await starts(agent, microphone)) <= 1
    assert len(await starts(np.zeros(len(agent)), microphone)) > 1
