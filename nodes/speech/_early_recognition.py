"""What was heard of a caller and is not settled, and when a recogniser hears it early."""

from __future__ import annotations

from dataclasses import dataclass, field

BYTES_PER_S = 32_000

LONGEST_PART_S = 24.0
"""Whisper hears at most 30 s at once; longer speech is transcribed in parts."""

FIRST_LOOK_S = 0.5
"""When the recogniser first hears a voice over the agent that goes on: it has told by 0.8 s, when a
voice that lasts interrupts."""

LOOKS_EVERY_S = 0.8
"""How long after that it hears it again, while the voice goes on and does not interrupt."""

GOES_ON_S = 0.128
"""For how long the voice must have gone on by then since its last gap."""

LOOKS_APART_S = 0.2
"""How much later than the last time it hears a voice that stops: each time costs 0.1 s of work."""


@dataclass(slots=True)
class Recording:
    """The sound since a little before a voice began, and the looks that were taken at it."""

    part: bytearray
    """The newest part."""
    window_s: float
    windows: int = 0
    """How many there are since the voice began."""
    parts: list[bytes] = field(default_factory=list)
    _looked: int | None = None
    """How many there were when the recogniser heard it last; None if it did not."""
    _next_s: float = FIRST_LOOK_S
    """When it is due to hear a voice that goes on."""

    def add(self, window: bytes) -> None:
        """Record a window; a part that gets too long is closed."""
        self.part += window
        self.windows += 1
        if len(self.part) > LONGEST_PART_S * BYTES_PER_S:
            self.parts.append(bytes(self.part))
            self.part.clear()

    def all_parts(self) -> tuple[bytes, ...]:
        """Return what was recorded."""
        return (*self.parts, bytes(self.part)) if self.part else tuple(self.parts)

    def is_due(self, voiced: int) -> bool:
        """Whether to hear a voice that goes on; asked once, and answered with yes once.

        Args:
            voiced: For how many windows it has gone on since its last gap.
        """
        lasted_s = self.windows * self.window_s
        if lasted_s < self._next_s or voiced * self.window_s < GOES_ON_S:
            return False
        self._next_s, self._looked = lasted_s + LOOKS_EVERY_S, self.windows
        return True

    def is_due_in_gap(self) -> bool:
        """Whether to hear a voice that has just stopped; asked once, and answered with yes once."""
        looked = self._looked
        if looked is not None and (self.windows - looked) * self.window_s < LOOKS_APART_S:
            return False
        self._looked = self.windows
        return True
