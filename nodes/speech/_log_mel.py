"""Whisper's log-mel features, in numpy.

The numbers are Whisper's (A. Radford et al., "Robust Speech Recognition via Large-Scale Weak
Supervision", 2022, section 2.2, and its published ``audio.py``): 25 ms Hann windows every 10 ms, 80
Slaney mel bands from 0 to 8 kHz, logarithm to base 10, a floor 8 below the loudest.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SAMPLE_RATE_HZ = 16_000
_WINDOW = 400
_HOP = 160
_BANDS = 80
_LINEAR_UNTIL_HZ = 1000.0
_MELS_PER_HZ = 3 / 200
_LOG_STEP = 27.0
"""Mels per factor of 6.4 above 1 kHz (M. Slaney, "Auditory Toolbox", 1998)."""


def samples_of(pcm: bytes) -> NDArray[np.float32]:
    """Return PCM16 little-endian as samples.

    Returns:
        Shape (samples,), float32, -1 to below 1.
    """
    import numpy as np

    return np.frombuffer(pcm, "<i2").astype(np.float32) / np.float32(32768)


def log_mel(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute Whisper's features.

    Args:
        samples: Shape (n,), float32, 16 kHz; n at least 201.

    Returns:
        Shape (80, n // 160), float32, about -1 to 1.5.
    """
    import numpy as np

    padded = np.pad(samples, _WINDOW // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[::_HOP][:-1]
    spectrum = np.fft.rfft(frames * _window(), axis=-1)
    power = spectrum.real**2 + spectrum.imag**2
    # A product of matrices would start numpy's own threads, which then wait in a loop: for 0.05 s
    # they take a core from the calls and the recogniser.  This takes 2 ms for 8 s of sound.
    bands = np.einsum("bf,wf->bw", _filters(), power)
    mel = np.log10(np.maximum(bands, 1e-10))
    mel = (np.maximum(mel, mel.max() - 8) + 4) / 4
    return np.ascontiguousarray(mel, np.float32)


def turn_features(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute the input of Smart Turn: the last 8 s, with normalised loudness.

    Args:
        samples: Shape (n,), float32, 16 kHz; only the last 8 s count.

    Returns:
        Shape (1, 80, 800), float32; shorter speech is padded with silence at the start.
    """
    import numpy as np

    wanted = 8 * SAMPLE_RATE_HZ
    recent = samples[-wanted:]
    window = np.pad(recent, (wanted - len(recent), 0))
    # 1e-7 keeps silence from dividing by zero; the model was trained with the same number.
    even = (window - window.mean()) / np.sqrt(window.var() + 1e-7)
    return log_mel(even.astype(np.float32))[None]


@cache
def _window() -> NDArray[np.float32]:
    import numpy as np

    return np.asarray(np.hanning(_WINDOW + 1)[:-1], np.float32)


@cache
def _filters() -> NDArray[np.float32]:
    """Return the mel bands as triangles of equal area: shape (80, 201)."""
    import numpy as np

    top = _mel(SAMPLE_RATE_HZ / 2)
    edges = np.array([_hertz(top * step / (_BANDS + 1)) for step in range(_BANDS + 2)])
    bins = np.linspace(0, SAMPLE_RATE_HZ / 2, _WINDOW // 2 + 1)
    low, middle, high = (edges[start : start + _BANDS, None] for start in range(3))
    rising = (bins - low) / (middle - low)
    falling = (high - bins) / (high - middle)
    triangles = np.maximum(0, np.minimum(rising, falling))
    return np.asarray(triangles * 2 / (high - low), np.float32)


def _mel(hertz: float) -> float:
    if hertz < _LINEAR_UNTIL_HZ:
        return hertz * _MELS_PER_HZ
    above = math.log(hertz / _LINEAR_UNTIL_HZ) / math.log(6.4)
    return _LINEAR_UNTIL_HZ * _MELS_PER_HZ + above * _LOG_STEP


def _hertz(mel: float) -> float:
    linear_until = _LINEAR_UNTIL_HZ * _MELS_PER_HZ
    if mel < linear_until:
        return mel / _MELS_PER_HZ
    return float(_LINEAR_UNTIL_HZ * 6.4 ** ((mel - linear_until) / _LOG_STEP))
