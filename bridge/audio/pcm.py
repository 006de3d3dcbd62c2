"""Arithmetic on PCM16 little-endian mono: its samples, whole ones, and what is audible."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence

AUDIBLE = 104
"""Samples at least this far from zero count as sound: -50 dB of full scale.  Speech on a line lies
near -20 dB and its softest consonants 30 dB below that (ITU-T P.56 takes active speech as what is
within 15.9 dB of its mean level, so this errs towards hearing more)."""


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


class WholeSamples:
    """The pieces of one sound, cut at whole samples.

    Networks and pipes cut PCM16 anywhere; a byte that is lost or kept would turn all that follows
    into noise.
    """

    def __init__(self) -> None:
        self._half = b""

    def push(self, pcm: bytes) -> bytes:
        """Add a piece, and return the samples that are whole.

        Args:
            pcm: PCM16, cut anywhere.
        """
        if not self._half and not len(pcm) % 2:
            return pcm
        pcm = self._half + pcm
        whole = len(pcm) & ~1
        self._half = pcm[whole:]
        return pcm[:whole]


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
