"""Arithmetic on PCM16 little-endian mono: what is audible, and resampling."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from functools import cache
from math import cos, gcd, pi, sin
from random import Random

from ._missing_library import need

AUDIBLE = 104
"""Samples at least this far from zero count as sound: -50 dB of full scale.  Speech on a line lies
near -20 dB and its softest consonants 30 dB below that (ITU-T P.56 takes active speech as what is
within 15.9 dB of its mean level, so this errs towards hearing more)."""

HISS = 4
"""Peak of the hiss of a quiet room: -78 dB of full scale."""

_TAPS = 16
"""Length of the resampling filter at the lower of two rates, to each side: with a Hann window this
keeps images more than 40 dB down."""


def samples(pcm: bytes | bytearray) -> array[int]:
    """Return PCM16 little-endian as numbers from -32768 to 32767."""
    values = array("h", bytes(pcm[: len(pcm) // 2 * 2]))
    if sys.byteorder == "big":
        values.byteswap()
    return values


def to_pcm(values: array[int]) -> bytes:
    """Return numbers as PCM16 little-endian."""
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values.tobytes()


def first_audible(values: array[int], start: int = 0, stop: int | None = None) -> int | None:
    """Return the index of the first audible sample of a stretch, or ``None`` if all is silence.

    Args:
        values: 16-bit samples; those within 104 of zero (-50 dB of full scale) are silence.
        start: Where the stretch begins.
        stop: Where it ends; ``None`` for the end of `values`.
    """
    stop = len(values) if stop is None else min(stop, len(values))
    for block in range(max(start, 0), stop, 480):
        part = values[block : min(block + 480, stop)]
        if max(part) >= AUDIBLE or min(part) <= -AUDIBLE:
            return block + next(i for i, value in enumerate(part) if abs(value) >= AUDIBLE)
    return None


def last_audible(values: array[int], start: int = 0, stop: int | None = None) -> int | None:
    """Return the index of the last audible sample of a stretch, or ``None`` if all is silence.

    Args:
        values: 16-bit samples; those within 104 of zero (-50 dB of full scale) are silence.
        start: Where the stretch begins.
        stop: Where it ends; ``None`` for the end of `values`.
    """
    stop = len(values) if stop is None else min(stop, len(values))
    backwards = values[max(start, 0) : stop]
    backwards.reverse()
    found = first_audible(backwards)
    return None if found is None else stop - 1 - found


def joined(sounds: Sequence[bytes], pause_s: float, rate_hz: int = 16_000) -> bytes:
    """Join sounds with exact pauses, for a caller who pauses in mid-sentence.

    Args:
        sounds: PCM16 little-endian mono; silence at the beginning and end of each is dropped.
        pause_s: Seconds from the last audible sample of one to the first of the next.
        rate_hz: Sample rate of the sounds.
    """
    parts = []
    for sound in sounds:
        values = samples(sound)
        first, last = first_audible(values), last_audible(values)
        if first is not None and last is not None:
            parts.append(to_pcm(values[first : last + 1]))
    return bytes(2 * round(pause_s * rate_hz)).join(parts)


def loudest(values: array[int]) -> int:
    """Return the loudest sample, and at least 2,000, to scale the drawing of a waveform."""
    return max(2_000, max(values, default=0), -min(values, default=0))


def hiss(length: int, random: Random) -> bytes:
    """Return the noise of a quiet room, at -78 dB of full scale, as PCM16.

    Args:
        length: How many samples to return.
        random: The source of randomness.
    """
    return to_pcm(array("h", (random.randint(-HISS, HISS) for _ in range(length))))


def resample(values: array[int], from_hz: int, to_hz: int) -> array[int]:
    """Resample audio with a polyphase filter of windowed sines, in phase with the input.

    Args:
        values: 16-bit samples.
        from_hz: Their sample rate.
        to_hz: The sample rate to return.

    Raises:
        RehearsalExtraError: numpy is not installed.
    """
    np = need("numpy", "the recording of a rehearsal")
    up, down = to_hz // gcd(from_hz, to_hz), from_hz // gcd(from_hz, to_hz)
    if up == down or not values:
        return values[:]
    kernels, reach = _kernels(up, down)
    length = -(-len(values) * up // down)
    padded = np.pad(np.asarray(values, dtype=np.float64), (reach, reach + down))
    out = np.zeros(length)
    for phase in range(min(up, length)):
        # Outputs phase, phase + up, … read every `down`-th sample with the same kernel.
        count = len(range(phase, length, up))
        for tap, weight in enumerate(kernels[phase], phase * down // up):
            out[phase::up] += weight * padded[tap : tap + (count - 1) * down + 1 : down]
    return array("h", np.clip(np.rint(out), -32768, 32767).astype(np.int16).tobytes())


@cache
def _kernels(up: int, down: int) -> tuple[tuple[tuple[float, ...], ...], int]:
    """Return the filter of each phase, and how many samples it reaches to each side."""
    cutoff = min(1.0, up / down)
    reach = round(_TAPS / cutoff)
    phases = []
    for phase in range(up):
        offset = phase * down % up / up
        weights = [
            _windowed_sinc(k - reach - offset, cutoff, reach + 1) for k in range(2 * reach + 1)
        ]
        total = sum(weights)
        phases.append(tuple(weight / total for weight in weights))
    return tuple(phases), reach


def _windowed_sinc(x: float, cutoff: float, width: int) -> float:
    if abs(x) >= width:
        return 0.0
    window = 0.5 + 0.5 * cos(pi * x / width)
    angle = pi * x * cutoff
    return window * (sin(angle) / angle if angle else 1.0)
