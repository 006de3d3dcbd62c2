"""Calls the detectors and the filter of an ear, which are user code, and checks their results."""

from __future__ import annotations

from ._protocols import NoiseFilter


def cleaned(noise_filter: NoiseFilter | None, pcm: bytes) -> bytes:
    """Return audio after the noise filter.

    Args:
        noise_filter: The filter; ``None`` leaves the audio as it is.
        pcm: PCM16 little-endian mono.

    Raises:
        TypeError: The filter returned something other than bytes.
        ValueError: The length is odd, and half a sample would shift all that follow.
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
    """Return the error for the first detector that did not return a probability.

    NaN would be neither voice nor silence, so a turn would never end.

    Args:
        *said: Each detector and its result; at least one is not a probability.
    """
    detector, wrong = next(one for one in said if not one[1] >= 0.0)
    return ValueError(f"{type(detector).__name__}.probability() is 0 to 1, not {wrong!r}")
