"""Sounds whose every sample is known, for tests of whoever hears them."""

from __future__ import annotations

from typing import Any

import numpy as np


def tone(seconds: float, hz: float, rate_hz: int, peak: float = 10_000) -> Any:
    """Return a sine as samples."""
    return peak * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate_hz)) / rate_hz)


def pcm(sound: Any) -> bytes:
    """Return samples as PCM16."""
    return np.rint(sound).astype("<i2").tobytes()
