"""What one server allows its callers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import final

import trio

HARD_LIMIT_FACTOR = 4
"""A message above ``max_message_bytes`` is answered by an error; above this many times as much it
is not even read: the connection is closed with code 1009."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a server; None disables one where that is allowed.

    Raises:
        ValueError: A bound is zero or negative.
    """

    max_calls: int = 100
    """Calls at the same time; the next caller is refused with status 503."""
    max_message_bytes: int = 65_536
    """Largest message of a client that is looked at."""
    messages_per_s: float = 100.0
    """JSON messages per second and call, over a while; playback positions alone are 20."""
    message_burst: int = 200
    """JSON messages that may come at once."""
    silence_s: float | None = 120.0
    """Seconds without any message of the client (audio counts, so does ping) that end a call."""
    stall_s: float | None = 10.0
    """Seconds in which a client takes nothing of what is sent to it that end a call."""
    max_waiting_bytes: int = 1_000_000
    """Bytes that may wait for a slow client; 1 MB is 20 s of 24 kHz audio."""
    handshake_s: float = 10.0
    """Seconds a client has for its HTTP request."""
    close_s: float = 2.0
    """Seconds a client has to take the last messages and the close frame of its call."""
    drain_s: float = 10.0
    """Seconds that calls have to end when the server stops."""

    def __post_init__(self) -> None:
        """Check every bound."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not value > 0:
                raise ValueError(f"Limits: {field.name} must be above 0, not {value!r}")


@final
class RateLimit:
    """A token bucket on trio's clock."""

    def __init__(self, per_s: float, burst: int) -> None:
        """Start with a full bucket.

        Args:
            per_s: Tokens that come back each second.
            burst: Tokens the bucket holds.
        """
        self._per_s = per_s
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at_s = trio.current_time()

    def take(self) -> bool:
        """Take a token; False when there is none."""
        now = trio.current_time()
        self._tokens = min(self._burst, self._tokens + (now - self._at_s) * self._per_s)
        self._at_s = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True
