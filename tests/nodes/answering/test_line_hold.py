"""LineHold: hold music is neither a turn nor a barge-in, and the agent goes on afterwards."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trio

from bargein import Call, ChatNode
from bargein.events import AgentSpeechHeld, CallerOnHold, UserAudio, UserAway, UserStoppedSpeaking
from bargein.phone import LineHold
from bargein.testing import Caller, ScriptedModel, open_call

pytestmark = pytest.mark.proof

RATE_HZ = 8_000
STORY = "Once upon a time there was a very long story. " * 10


def music(seconds: float) -> bytes:
    """Return chords that change every 0.6 s, with overtones and fading notes."""
    chords = [(262, 330, 392), (220, 262, 330), (175, 220, 262), (196, 247, 294)]
    parts = []
    at = np.arange(round(0.6 * RATE_HZ)) / RATE_HZ
    for place in range(round(seconds / 0.6)):
        notes = [
            np.sin(2 * np.pi * hz * over * at) / over
            for hz in chords[place % 4]
            for over in (1, 2, 3)
        ]
        parts.append(sum(notes) * np.exp(-at) * 2_000)
    return np.concatenate(parts).astype("<i2").tobytes()


def voice(seconds: float) -> bytes:
    """Return noise whose spectrum changes every 70 ms, with gaps, as that of speech does."""
    dice, noise = random.Random(1), np.random.default_rng(1)
    parts = []
    for place in range(round(seconds / 0.07)):
        sound = noise.standard_normal(round(0.07 * RATE_HZ))
        width = dice.choice([2, 5, 12])
        shape = np.hanning(width + 2) * np.cos(np.arange(width + 2) * dice.uniform(0.2, 2.5))
        loud = 0 if place % 6 == 5 else 2_500 / max(float(np.abs(shape).sum()), 0.1)
        parts.append(np.convolve(sound, shape, "same") * loud)
    return np.concatenate(parts).clip(-30_000, 30_000).astype("<i2").tobytes()


class Agent:
    """An agent that tells a story, whose model answers turns and callers who are away."""

    def __init__(self) -> None:
        self.model = ScriptedModel(["Are you there?", "Welcome back."])
        self.heard: list[tuple[float, bool, int]] = []
        self.hold: LineHold

    async def answer(self, call: Call) -> None:
        self.hold = LineHold(call)
        node = ChatNode(self.model)
        call.bridge(node).on([UserStoppedSpeaking, UserAway]).stream(node.generate).broadcast()
        call.router.observe(UserAudio, self._hear)
        call.say(STORY)

    def _hear(self, message: Any) -> None:
        pcm = message.event.pcm
        self.heard.append((message.at_s, any(pcm), len(pcm)))


def frames(sound: bytes) -> Iterator[bytes]:
    size = 2 * RATE_HZ // 50
    return (sound[at : at + size] for at in range(0, len(sound) - size + 1, size))


async def play(caller: Caller, sound: bytes) -> None:
    for pcm in frames(sound):
        caller.publish(UserAudio(pcm=pcm, sample_rate_hz=RATE_HZ))
        await trio.sleep(0.02)


async def test_hold_music_keeps_the_agent_quiet_until_a_voice_is_back(autojump_clock: Any) -> None:
    """Ears get silence meanwhile, nobody who is away is asked, and then the story goes on."""
    agent = Agent()
    async with open_call(agent.answer, chars_per_s=10) as caller:
        await caller.at(0.1)
        await play(caller, music(9.0))
        [on] = caller.events(CallerOnHold)
        assert on.on
        assert agent.hold.is_on
        assert [held.reason for held in caller.events(AgentSpeechHeld)] == ["on_hold"]
        since_s = next(at_s for at_s, loud, _ in agent.heard if not loud)
        assert 3.0 <= since_s <= 5.0
        quiet = caller.heard
        caller.publish(UserAway(away_s=10.0, count=1))
        await play(caller, music(6.0))
        assert caller.heard == quiet
        assert not agent.model.requests
        await play(caller, voice(3.0))
        assert [event.on for event in caller.events(CallerOnHold)] == [True, False]
        assert caller.events(CallerOnHold)[1].lasted_s == pytest.approx(12.2, abs=1.5)
        assert max(size for _, _, size in agent.heard) >= 2 * RATE_HZ * 1.9  # its first words
        await caller.at(25.0)
        assert len(caller.heard) > len(quiet)


@pytest.mark.parametrize("sound", [voice(12.0), bytes(2 * RATE_HZ * 8)], ids=["voice", "silence"])
async def test_voices_and_silence_are_no_hold(sound: bytes, autojump_clock: Any) -> None:
    """All of their sound reaches the ears as it came."""
    agent = Agent()
    async with open_call(agent.answer, chars_per_s=10) as caller:
        await caller.at(0.1)
        await play(caller, sound)
        assert not caller.events(CallerOnHold)
        assert len(agent.heard) == len(list(frames(sound)))


async def test_free_hold_music_is_noticed(autojump_clock: Any) -> None:
    """Four of the five pieces of Debian's asterisk-moh-opsound-wav within ten seconds."""
    import wave

    pieces = sorted(Path("/usr/share/asterisk/moh").glob("*.wav"))  # noqa: ASYNC240
    if not pieces:
        pytest.skip("no hold music: install Debian's asterisk-moh-opsound-wav")
    noticed = 0
    for piece in pieces:
        with wave.open(str(piece)) as file:
            sound = file.readframes(10 * RATE_HZ)
        async with open_call(Agent().answer, chars_per_s=10) as caller:
            await caller.at(0.1)
            await play(caller, sound)
            noticed += bool(caller.events(CallerOnHold))
    assert noticed >= 4
