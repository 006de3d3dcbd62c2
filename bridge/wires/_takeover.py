"""What a wire needs whose calls can go on in another process."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class GivesAway(Protocol):
    """A session whose call can go on in another process; it says so by having this method."""

    @property
    def can_leave(self) -> bool:
        """Whether its client comes back."""
        ...

    def give_away(self) -> None:
        """Leave the open call to another process, and tell its client to come back at once."""


class SharedCalls(Protocol):
    """What the servers behind one address know of each other's calls."""

    async def leave_note(self, key: str, text: str) -> bool:
        """Leave a text for whichever server asks for it first; return whether that was possible."""
        ...

    async def fetch_note(self, key: str) -> str | None:
        """Return a text that was left, once; ``None`` for none."""
        ...

    async def is_lost(self, call_id: str) -> bool:
        """Whether a call waits for somebody to go on with it, as its server is gone."""
        ...


@runtime_checkable
class Shares(Protocol):
    """A wire whose requests of one call may reach several servers; it says so by this method."""

    def share(self, calls: SharedCalls) -> None:
        """Share what is to be known of its calls with other servers, from now on."""
