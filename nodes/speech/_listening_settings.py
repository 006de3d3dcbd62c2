"""When a voice begins and stops: what can be set of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListeningSettings:
    """When a voice begins and stops."""

    speech_above: float = 0.5
    """A window is voiced from this probability on (Silero VAD's own default)."""
    silence_below: float = 0.35
    """A window is silent below this one (Silero's default: 0.15 under the other)."""
    quietest_peak_dbfs: float = -45.0
    """A window whose highest sample is lower is no voice, in dB of full scale: speech of -57 dBFS,
    35 dB below what callers usually send.  So soft are echoes, and people in the next room."""
    below_caller_db: float | None = 12.0
    """What is so many dB below the caller is somebody else's voice, once a turn has told how loud
    the caller is: it neither holds nor interrupts the agent, and begins no turn.  The voice of a
    turn that goes on may be 4 dB weaker.  None: all voices count."""
    above_background_db: float | None = 8.0
    """A window has to be so much louder than the quietest moments of the last 7 s to be a voice, if
    those moments are loud enough to be one: the babble of a café never stops, a caller pauses.
    Eight people who talk at once are louder in one window of five; with 12 dB, so is one of five of
    a caller who is 10 dB louder than they.  None: what never stops may be a voice."""
    onset_windows: int = 2
    """Voiced windows in a row, 32 ms each, that begin a voice."""
    stop_windows: int = 2
    """Silent windows in a row after which a voice has stopped."""
    pause_s: float = 0.2
    """Silence after which recogniser and end-of-turn model begin.  Of an "uh-huh" that is heard in
    its gap, recognisers make words."""
    pre_roll_s: float = 0.35
    """Sound from before the onset that the recogniser gets too."""
