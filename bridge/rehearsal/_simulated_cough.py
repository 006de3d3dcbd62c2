"""Synthesises coughs for simulated callers.

A cough has three parts: a loud burst of about 50 ms as the glottis opens; 100 to 300 ms of noise as
air streams through the throat; and often a voiced end as the vocal folds close again (Korpáš,
Sadloňová and Vrabec, "Analysis of the cough sound: an overview", 1996).  This one is white noise
followed by pulses of falling pitch, both filtered by the resonances of an open mouth.

What a voice detector makes of it depends on the voiced end: Silero hears no speech in a dry cough
(0), and 0.2 s of speech in each burst of a throaty one (1).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from math import cos, exp, pi
from random import Random

from ..audio.pcm import to_pcm

RATE_HZ = 16_000

RESONANCES = ((500.0, 300.0), (1500.0, 400.0), (2600.0, 700.0))
"""Centre and width, in Hz, of the resonances of a neutral vocal tract of 17 cm.  They are wide
because an open glottis damps them (Stevens, "Acoustic Phonetics", 1998)."""

BURST_S, VOICE_FROM_S, LENGTH_S = 0.05, 0.12, 0.32
PAUSE_S = 0.13
"""Breath between two bursts of one cough."""

PITCH_HZ = (220.0, 160.0)
"""At the beginning of the voice and at its end."""

PEAK = 14_000
"""The loudest sample: -7 dB of full scale, as loud as speech close to a microphone."""


def cough(bursts: int = 2, *, seed: int = 1, voiced: float = 1.0) -> bytes:
    """Synthesise a cough.

    Args:
        bursts: The number of bursts, at least 1; each lasts 0.32 s, with 0.13 s between them.
        seed: Seeds the noise; each seed makes another cough.
        voiced: How voiced the end of each burst is, from 0 to 1.

    Returns:
        PCM16 little-endian mono, 16 kHz.
    """
    random = Random(seed)
    values: list[float] = []
    for number in range(bursts):
        if number:
            values += [0.0] * round(PAUSE_S * RATE_HZ)
        weight = max(0.4, 1.0 - 0.2 * number)
        values += [weight * value for value in _through_mouth(_breath(random, voiced))]
    scale = PEAK / max(abs(value) for value in values)
    return to_pcm(array("h", (round(value * scale) for value in values)))


def _breath(random: Random, voiced: float) -> list[float]:
    """Return the sound that leaves the glottis in one burst."""
    values, phase, pulse = [], 0.0, 0.0
    for n in range(round(LENGTH_S * RATE_HZ)):
        at_s = n / RATE_HZ
        value = random.uniform(-1, 1) * _air(at_s)
        share = (at_s - VOICE_FROM_S) / (LENGTH_S - VOICE_FROM_S)
        if share > 0:
            phase += (PITCH_HZ[0] + (PITCH_HZ[1] - PITCH_HZ[0]) * share) / RATE_HZ
            pulse *= 0.85  # vocal folds close softly: less of the higher harmonics
            if phase >= 1:
                phase -= 1
                pulse += 0.4
            value += voiced * pulse * min(1.0, 4 * share) * _end(at_s)
        values.append(value)
    return values


def _air(at_s: float) -> float:
    attack = min(1.0, at_s / 0.004)
    return attack * (exp(-2 * at_s / BURST_S) + 0.35 * exp(-at_s / 0.2)) * _end(at_s)


def _end(at_s: float) -> float:
    return min(1.0, max(0.0, (LENGTH_S - at_s) / 0.04))


def _through_mouth(values: Sequence[float]) -> list[float]:
    """Filter a sound by the resonances of a mouth, each a resonator of two poles."""
    out = [0.0] * len(values)
    for middle_hz, width_hz in RESONANCES:
        radius = exp(-pi * width_hz / RATE_HZ)
        one, two = 2 * radius * cos(2 * pi * middle_hz / RATE_HZ), -radius * radius
        before = last = 0.0
        for n, value in enumerate(values):
            before, last = last, value + one * last + two * before
            out[n] += last * (1 - radius)
    return out
