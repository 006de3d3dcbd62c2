"""What a wire can carry, as data: nobody asks a wire for its name to know what it can do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What a wire carries, and what it tells.

    Raises:
        ValueError: A rate or the smallest piece is not positive, or a wire without audio says that
            it can pause it.
    """

    carries_audio: bool = True
    """Whether callers may hear and speak; otherwise only text travels."""
    caller_rate_hz: int = 16_000
    """The sample rate of the caller's sound on the wire; a call always gets 16 kHz."""
    agent_rate_hz: int = 24_000
    """The sample rate of the audio for ``Transport.play()``."""
    piece_ms: int = 20
    """The smallest piece of audio that the wire carries, in milliseconds."""
    can_pause: bool = False
    """Whether the caller's player can stand still and go on at the same sample; its transports have
    ``hold()``.  Otherwise a hold clears the player, and what was not heard is sent again."""
    knows_played: bool = False
    """Whether the caller's side tells how far it has played; otherwise what was sent counts."""
    carries_dtmf: bool = False
    """Whether the caller can press keys."""

    def __post_init__(self) -> None:
        """Check what is said."""
        for name in ("caller_rate_hz", "agent_rate_hz", "piece_ms"):
            if getattr(self, name) <= 0:
                raise ValueError(f"Signals({name}=) is positive, not {getattr(self, name)!r}")
        if self.can_pause and not self.carries_audio:
            raise ValueError("Signals(can_pause=True) needs carries_audio=True")
