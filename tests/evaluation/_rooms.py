"""What a microphone hears besides its caller, and what a telephone line does to it.

Each room is made for one call and gets its frames in order: 20 ms of PCM16 mono 16 kHz. Levels are
root mean squares in dB of full scale (dBFS); the callers' speech is near -22.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bargein.bridge.audio.g711 import decode_mu_law, encode_mu_law
from bargein.rehearsal import Room

RATE_HZ = 16_000
Sound = NDArray[np.float64]
"""Samples from -32768 to 32767."""


class Hearable(Protocol):
    """A stretch of the agent's audio, as a caller heard it."""

    at_s: float
    pcm: bytearray


# --- sounds ---------------------------------------------------------------------------------------


def level_db(sound: Sound) -> float:
    """Return the level of a sound in dBFS; minus infinity for silence."""
    power = float(np.mean(np.square(sound))) if len(sound) else 0.0
    return 10 * math.log10(power / 32768**2) if power else -math.inf


def at_level(sound: Sound, db: float) -> Sound:
    """Return a sound at another level, in dBFS."""
    return sound * 10 ** ((db - level_db(sound)) / 20)


def pink_noise(seconds: float, seed: int = 1) -> Sound:
    """Return noise whose power falls with frequency, like that of rooms and streets.

    It covers 50 Hz to 7 kHz and repeats seamlessly.
    """
    length = round(seconds * RATE_HZ)
    spectrum = np.fft.rfft(np.random.default_rng(seed).standard_normal(length))
    hz = np.fft.rfftfreq(length, 1 / RATE_HZ)
    shape = np.where((hz >= 50) & (hz <= 7_000), 1 / np.sqrt(np.maximum(hz, 1)), 0)
    return at_level(np.fft.irfft(spectrum * shape, length), -30)


def sound_of(pcm: bytes) -> Sound:
    """Return PCM16 as samples."""
    return np.frombuffer(pcm, "<i2").astype(np.float64)


def talk(speakers: Sequence[bytes]) -> Sound:
    """Return people who talk at the same time at the same level, over and over.

    Args:
        speakers: What each says: PCM16 mono 16 kHz.
    """
    sounds = [at_level(sound_of(pcm), -30) for pcm in speakers]
    length = max(len(sound) for sound in sounds)
    return at_level(np.sum([np.resize(sound, length) for sound in sounds], axis=0), -30)


def _pcm(sound: Sound) -> bytes:
    return np.clip(np.rint(sound), -32768, 32767).astype("<i2").tobytes()


# --- rooms ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A level from a time on."""

    from_s: float
    db: float
    """A level, or for an echo the loss; minus infinity is nothing."""


def _db_at(steps: Sequence[Step], at_s: float) -> float:
    return next((step.db for step in reversed(steps) if step.from_s <= at_s), -math.inf)


def beside(sound: Sound, steps: Sequence[Step]) -> Room:
    """Return a room with a background sound whose level changes.

    Args:
        sound: The sound, repeated during the call.
        steps: Its level in dBFS; their times count from the first frame.
    """
    sound = at_level(sound, 0)
    heard = 0

    def mix(frame: bytes, at_s: float) -> bytes:
        nonlocal heard
        voice = sound_of(frame)
        gain = 10 ** (_db_at(steps, heard / RATE_HZ) / 20)
        piece = np.take(sound, np.arange(heard, heard + len(voice)), mode="wrap")
        heard += len(voice)
        return _pcm(voice + gain * piece)

    return mix


def echo(
    played: Callable[[], Sequence[Hearable]], steps: Sequence[Step], delay_s: float = 0.12
) -> Room:
    """Return a room with an echo: the microphone hears the agent's voice later and softer.

    Args:
        played: Returns what the caller's loudspeaker has played: spans of PCM16 mono 24 kHz.
        steps: The level of the echo relative to what was played, in dB; times count from the first
        frame.
        delay_s: The delay from the loudspeaker's clock to the microphone's, in seconds; at least
        0.02.
    """
    began_s: float | None = None

    def mix(frame: bytes, at_s: float) -> bytes:
        nonlocal began_s
        began_s = at_s if began_s is None else began_s
        gain = 10 ** (_db_at(steps, at_s - began_s) / 20)
        if not gain:
            return frame
        voice = sound_of(frame)
        return _pcm(voice + gain * _heard_at(played(), at_s - delay_s, len(voice)))

    return mix


_MARGIN = 48
"""Samples at 24 kHz that the filter below reaches to each side."""


def _heard_at(spans: Sequence[Hearable], at_s: float, length: int) -> Sound:
    """Return samples at 16 kHz of what was played from a moment on."""
    count = round(length * 1.5)
    window = np.zeros(count + 2 * _MARGIN)
    first_s = at_s - _MARGIN / 24_000
    for span in reversed(spans):
        start = round((span.at_s - first_s) * 24_000)
        piece = sound_of(bytes(span.pcm[max(0, -start) * 2 : (len(window) - start) * 2]))
        if start < len(window) and len(piece):
            at = max(0, start)
            window[at : at + len(piece)] = piece[: len(window) - at]
        if start <= 0:
            break  # older spans were over by then
    smooth = np.convolve(window, _low_pass(7_000, 24_000, _MARGIN), "valid")
    return np.asarray(np.interp(np.arange(length) * 1.5, np.arange(len(smooth)), smooth))


def _low_pass(cutoff_hz: float, rate_hz: float, reach: int) -> Sound:
    n = np.arange(-reach, reach + 1)
    kernel = np.sinc(2 * cutoff_hz / rate_hz * n) * np.hanning(len(n))
    return np.asarray(kernel / np.sum(kernel))


# --- the telephone --------------------------------------------------------------------------------


def telephone() -> Room:
    """Return an 8 kHz mu-law line (ITU-T G.711) between two 3.4 kHz filters."""
    reach = 32
    kernel = _low_pass(3_400, RATE_HZ, reach)
    before, after = np.zeros(2 * reach), np.zeros(2 * reach)

    def carry(frame: bytes, at_s: float) -> bytes:
        nonlocal before, after
        voice = np.concatenate([before, sound_of(frame)])
        before = voice[-2 * reach :]
        narrow = np.convolve(voice, kernel, "valid")[::2]
        coded = sound_of(decode_mu_law(encode_mu_law(_pcm(narrow))))
        wide = np.zeros(2 * len(coded))
        wide[::2] = 2 * coded
        wide = np.concatenate([after, wide])
        after = wide[-2 * reach :]
        return _pcm(np.convolve(wide, kernel, "valid"))

    return carry
