"""Settings for the detection of voice."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bargein.bridge.validation.numbers import check_count, check_seconds, check_share

LONGEST_PRE_ROLL_S = 10.0
"""A recogniser understands no word better for what was said so long before, in seconds."""


@dataclass(frozen=True, slots=True)
class ListeningSettings:
    """Decides when a voice begins and stops."""

    speech_above: float = 0.5
    """The least probability of a voiced window (Silero VAD's own default)."""
    silence_below: float = 0.35
    """A window below this probability is silent (Silero's default: 0.15 under the other)."""
    quietest_peak_dbfs: float = -45.0
    """A window whose highest sample is lower is not voice, in dBFS. It corresponds to speech of -57
    dBFS, 35 dB below what callers usually send: echoes and people in the next room are that
    soft. Within a voice whose peaks are less than 20 dB above it, closures of up to 0.13 s may be
    lower, if the detector is sure that it goes on."""
    below_caller_db: float | None = 12.0
    """A voice this many dB below the caller is somebody else's, once a turn has shown how loud the
    caller is: it neither holds nor interrupts the agent, and begins no turn. The voice of a
    continuing turn may be another 4 dB weaker. ``None`` counts all voices."""
    above_background_db: float | None = 8.0
    """How much louder than the quietest moments of the last 7 s a window has to be to count as
    voice, in dB, if those moments are loud enough for voice: the babble of a café never stops, a
    caller pauses. Eight people who talk at once exceed it in one window of five; with 12 dB, a
    caller 10 dB louder than they would exceed it in only one window of five. ``None`` lets constant
    sound count as voice."""
    onset_windows: int = 2
    """Voiced windows in a row, 32 ms each, that begin a voice."""
    stop_windows: int = 2
    """Silent windows in a row after which a voice has stopped."""
    pause_s: float = 0.2
    """Silence after which the recogniser and the end-of-turn model start, in seconds. With a
    shorter one they would hear half an "uh-huh" in its gap, and turn it into words."""
    pre_roll_s: float = 0.35
    """How much audio before the onset the recogniser gets too, in seconds, up to 10."""

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            TypeError: One is not a number.
            ValueError: One is out of its bounds.
        """
        where = "ListeningSettings"
        check_share(f"{where}(speech_above=)", self.speech_above)
        check_share(f"{where}(silence_below=)", self.silence_below)
        if not self.speech_above:
            raise ValueError(f"{where}(speech_above=0) would take silence for voice")
        _check_db(f"{where}(quietest_peak_dbfs=)", self.quietest_peak_dbfs, -math.inf, 0.0)
        for name in ("below_caller_db", "above_background_db"):
            if getattr(self, name) is not None:
                _check_db(f"{where}({name}=)", getattr(self, name), 0.0, math.inf)
        check_count(f"{where}(onset_windows=)", self.onset_windows)
        check_count(f"{where}(stop_windows=)", self.stop_windows)
        check_seconds(f"{where}(pause_s=)", self.pause_s)
        check_seconds(f"{where}(pre_roll_s=)", self.pre_roll_s)
        if self.pre_roll_s > LONGEST_PRE_ROLL_S:
            raise ValueError(
                f"{where}(pre_roll_s=) is at most {LONGEST_PRE_ROLL_S:g}, not {self.pre_roll_s!r}"
            )


def _check_db(what: str, value: object, low: float, high: float) -> None:
    wanted = "a finite number of dB" + (", at most 0" if high == 0.0 else ", from 0")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{what} is {wanted}, not {value!r}")
    if not (low <= value <= high and math.isfinite(value)):
        raise ValueError(f"{what} is {wanted}, not {value!r}")
