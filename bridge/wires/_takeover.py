"""What a session needs whose call can go on in another process."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class GivesAway(Protocol):
    """A session whose call can go on in another process; it says so by having this method."""

    def give_away(self) -> None:
        """Leave the open call to another process, and tell its client to come back at once."""
