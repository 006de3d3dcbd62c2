"""What the take-over of calls needs of a journal."""

from __future__ import annotations

from typing import Protocol

import trio


class CallJournal(Protocol):
    """The records of one call, which one process at a time may write; the last value counts."""

    @property
    def fence(self) -> int:
        """Grows with each process that takes the call."""
        ...

    @property
    def fenced(self) -> trio.Event:
        """Set once another process has taken the call."""
        ...

    def write(self, key: str, value: str) -> None:
        """Write a record soon; all records of one step are written together."""

    def drop(self, key: str) -> None:
        """Remove a record soon."""

    async def kept(self) -> None:
        """Wait until everything put so far is kept."""

    async def close(self, *, forget: bool) -> None:
        """Write what is left and give the call up.

        Args:
            forget: Whether the call is over, so that nobody will take it.
        """


class JournalStore(Protocol):
    """Keeps the journals of calls."""

    async def open(self, call_id: str) -> CallJournal:
        """Start the journal of a new call."""
        ...

    async def read(self, call_id: str) -> dict[str, str] | None:
        """Return the records of a call, and leave it where it is; ``None`` if it is unknown."""
        ...

    async def claim(self, call_id: str) -> tuple[CallJournal, dict[str, str]] | None:
        """Take a call and its records; ``None`` if it is unknown, or its owner is alive."""
        ...
