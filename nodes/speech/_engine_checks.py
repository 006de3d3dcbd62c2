"""Asks the detectors and the filter of an ear, and checks their answers: it is foreign code."""

from __future__ import annotations

from ._protocols import NoiseFilter


def cleaned(noise_filter: NoiseFilter | None, pcm: bytes) -> bytes:
    """Return what a filter leaves of a sound.

    Args:
        noise_filter: The filter; ``None`` leaves the sound as it is.
        pcm: PCM16 little-endian mono.

    Raises:
        TypeError: The filter returns something else than bytes.
        ValueError: Half a sample is left, which would shift all samples that follow.
    """
    gives = "UserAudio"
    if noise_filter is not None:
        pcm, gives = noise_filter.clean(pcm), f"{type(noise_filter).__name__}.clean()"
        if not isinstance(pcm, (bytes, bytearray)):
            raise TypeError(f"{gives} gives bytes of PCM16, not {type(pcm).__name__}")
    if len(pcm) % 2:
        raise ValueError(f"{gives} gave {len(pcm)} bytes; a sample of PCM16 has two")
    return pcm


def no_probability(*said: tuple[object, float]) -> ValueError:
    """Return the error of the first of some detectors that says no probability.

    NaN would be neither voice nor silence, and end no turn.

    Args:
        *said: Each detector, and what it has said of a sound; one at least says no probability.
    """
    detector, wrong = next(one for one in said if not one[1] >= 0.0)
    return ValueError(f"{type(detector).__name__}.probability() is 0 to 1, not {wrong!r}")
