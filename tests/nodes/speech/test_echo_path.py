"""How loud the echo of one call can be: learned while the agent speaks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from bargein.nodes.speech._echo_path import EchoPath

STRETCH = 256
DELAYS = 48
QUIET = 3e-4
"""The noise of a microphone: -70 dB of full scale."""
SPEECH = 0.08


def speech(seconds: float, seed: int = 1) -> NDArray[np.float32]:
    """Return noise with the loudness of speech: syllables of 0.2 s, and a pause in each second."""
    rng = np.random.default_rng(seed)
    times = np.arange(round(seconds * 16_000)) / 16_000
    loudness = (np.sin(2 * np.pi * 5 * times) ** 2) * (times % 1.0 < 0.8)
    return (rng.standard_normal(len(times)) * SPEECH * loudness).astype(np.float32)


def quiet(seconds: float) -> NDArray[np.float32]:
    """Return the noise of a microphone that nobody speaks into."""
    noise = np.random.default_rng(7).standard_normal(round(seconds * 16_000))
    return (noise * QUIET).astype(np.float32)


def late(sound: NDArray[np.float32], delay_s: float, decibels: float) -> NDArray[np.float32]:
    """Return what a microphone gets of a loudspeaker."""
    gain = 10 ** (decibels / 20)
    shift = round(delay_s * 16_000)
    return np.concatenate([np.zeros(shift, np.float32), sound])[: len(sound)] * np.float32(gain)


def excesses(
    path: EchoPath, played: NDArray[np.float32], heard: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Return how much too loud for an echo each stretch was."""
    found = []
    for at in range(0, len(played) - 2 * STRETCH + 1, 2 * STRETCH):
        part = slice(at, at + 2 * STRETCH)
        path.add(played[part], heard[part], 2)
        found.append(path.excess_db())
    return np.array(found)


@pytest.mark.parametrize("decibels", [0, -20, -40])
@pytest.mark.parametrize("delay_s", [0.0, 0.3, 0.6])
def test_an_echo_is_as_loud_as_an_echo_can_be(decibels: float, delay_s: float) -> None:
    """However loud and late, from the first sound on and after pauses, it is never too loud."""
    agent = speech(8.0)
    heard = late(agent, delay_s, decibels) + quiet(8.0)
    assert (excesses(EchoPath(DELAYS), agent, heard) <= 0).all()


def test_a_voice_is_too_loud_where_there_was_no_echo() -> None:
    """With headphones, half a second and the longest delay are enough to learn it."""
    agent, heard = speech(4.0), quiet(4.0)
    begin = round(1.4 * 16_000)
    heard[begin:] += speech(2.6, seed=3)
    found = excesses(EchoPath(DELAYS), agent, heard)
    assert (found[: begin // 512] <= 0).all()
    assert found[begin // 512 : begin // 512 + 8].max() > 20


def test_a_voice_over_a_weak_echo_is_too_loud() -> None:
    """Somebody close to the microphone is louder than an echo that lost 30 dB."""
    agent = speech(4.0)
    heard = late(agent, 0.2, -30) + quiet(4.0)
    begin = 2 * 16_000
    heard[begin:] += speech(2.0, seed=3)
    assert excesses(EchoPath(DELAYS), agent, heard)[begin // 512 + 4 :].max() > 6


def test_before_it_knows_anything_nothing_is_too_loud() -> None:
    """A caller who talks from the agent's first word on does not count as too loud at once."""
    agent = speech(1.2)
    assert (excesses(EchoPath(DELAYS), agent, speech(1.2, seed=3)) <= 0).all()


def test_what_was_learned_outlives_the_agents_silence() -> None:
    """The next time the agent speaks a voice is known at once."""
    path = EchoPath(DELAYS)
    excesses(path, speech(3.0), quiet(3.0))
    path.agent_is_silent()
    assert path.excess_db() == 0
    found = excesses(path, speech(0.5), quiet(0.1).repeat(5) + speech(0.5, seed=3))
    assert found.max() > 20


def test_who_talks_for_long_does_not_become_the_echo() -> None:
    """Two seconds of talking over the agent are still too loud at their end."""
    agent, heard = speech(7.0), quiet(7.0)
    begin = 3 * 16_000
    heard[begin : begin + 32_000] += speech(2.0, seed=3)
    found = excesses(EchoPath(DELAYS), agent, heard)
    assert found[(begin + 24_000) // 512 : (begin + 32_000) // 512].max() > 20


def test_a_silent_agent_has_no_echo() -> None:
    """Nothing is learned of a microphone while nothing is played."""
    path = EchoPath(DELAYS)
    excesses(path, np.zeros(64_000, np.float32), quiet(4.0))
    found = excesses(path, speech(0.4), speech(0.4, seed=3))
    assert (found == 0).all()
