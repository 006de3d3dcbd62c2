"""Where each line begins on the windows of the voice detector.

The detector hears windows of 512 samples, and a line may begin anywhere in one.  The place decides
in which window a short sound is found and what the classifiers see of it, so the same "mm-hmm"
holds the agent for 0.1 or for 0.4 s.  Left to chance, another line misses its bound in each run.
"""

from __future__ import annotations

from bargein.rehearsal import Cue, Perception, ScriptLine, SimulatedCaller

FRAME_BYTES = 640
"""20 ms of PCM16 mono at 16 kHz, which the caller sends at once."""

PLACES = 8
"""How many places there are: 8 frames of 320 samples are 5 windows, and then a frame begins with a
window again."""


class Places:
    """Follows a call to know how much was sent, and lets its lines wait for their places."""

    def __init__(self) -> None:
        self._call: SimulatedCaller | None = None

    def cue(self, cue: Cue, place: int) -> Cue:
        """Return a cue that is due at a place, at most 0.16 s after the one that it is made of.

        Args:
            cue: When the line is to be said.
            place: How many frames after the beginning of a window, modulo `PLACES`.
        """

        def is_due(now: Perception) -> bool:
            assert self._call is not None
            sent = len(self._call.microphone.pcm) // FRAME_BYTES
            return cue.is_due(now) and sent % PLACES == place % PLACES

        return Cue(cue.description, is_due)

    # --- as the listener of a call ---------------------------------------------------------------

    def call_began(self, start_s: float, simulated: SimulatedCaller) -> None:
        """Hear that the call begins."""
        self._call = simulated

    def line(self, at_s: float, line: ScriptLine) -> None:
        """Hear that a line begins."""

    def messages(self, messages: object) -> None:
        """Hear of messages."""

    def tick(self, at_s: float, hearing: object) -> None:
        """Hear that time has passed."""
