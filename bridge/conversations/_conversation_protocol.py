"""What a call needs from a store of conversations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from ..history._entries import Entry


@dataclass(frozen=True, slots=True)
class ConversationInfo:
    """What a store knows about a conversation without opening it."""

    id: str
    entries: int
    """How many entries it has."""
    created_s: float
    """When its first entry was written, in Unix seconds."""
    changed_s: float
    """When the last call in it wrote its first entry, or closed; in Unix seconds."""


class Conversation(Protocol):
    """A conversation, open for one call."""

    @property
    def id(self) -> str:
        """Its name in the store."""
        ...

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Its entries when it was opened, repaired; times are in seconds of trio's clock and may be
        negative."""
        ...

    @property
    def on_trouble(self) -> Callable[[str], None] | None:
        """Called with a text for people when entries cannot be saved: once for each series of
        failures, and at once if one has already started."""

    @on_trouble.setter
    def on_trouble(self, told: Callable[[str], None] | None, /) -> None: ...

    def write(self, index: int, entry: Entry) -> None:
        """Save an entry before returning; never waits for long and never raises.

        Entries that cannot be saved now are kept and saved later, in order.

        Args:
            index: Its index in the history; an earlier entry there is overwritten.
            entry: The entry.
        """


class Conversations(Protocol):
    """A store of conversations, shared by all calls."""

    def open_conversation(self, id: str) -> AbstractAsyncContextManager[Conversation]:
        """Open a conversation, a new one if there is none; leaving the block closes it.

        Args:
            id: Its name.

        Raises:
            ConversationBusyError: It is open already.
            ConversationError: It cannot be read by this version.
        """
        ...

    async def list(self) -> Sequence[ConversationInfo]:
        """Return all conversations, the one that changed last first."""
        ...

    async def delete(self, id: str) -> None:
        """Delete a conversation for good; it is no error if it does not exist.

        Args:
            id: Its name.

        Raises:
            ConversationBusyError: It is open.
        """
