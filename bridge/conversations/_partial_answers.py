"""Answers that grow: which of them lie in the file in pieces, and what is to be added to them."""

from __future__ import annotations

from collections.abc import Mapping

from ..history._entries import AgentEntry, Entry
from ._entry_records import to_addition


class GrowingAnswers:
    """What the file has of the answers of one call, by their place in the history."""

    def __init__(self) -> None:
        self._written: dict[int, AgentEntry] = {}
        self._additions: dict[int, int] = {}

    @property
    def in_pieces(self) -> dict[int, Entry]:
        """The answers with additions in the file, as they are there."""
        return {index: self._written[index] for index in self._additions}

    def has_additions(self, index: int) -> bool:
        """Whether the file has additions to an entry."""
        return index in self._additions

    def addition(self, index: int, entry: Entry) -> tuple[int, str] | None:
        """Return what a change adds to an answer.

        Args:
            index: The place of the entry in the history.
            entry: The entry now.

        Returns:
            The number of the addition, from 1, and its record; ``None`` where the entry is to be
            written whole.
        """
        before = self._written.get(index)
        if before is None or not isinstance(entry, AgentEntry):
            return None
        record = to_addition(before, entry)
        return None if record is None else (self._additions.get(index, 0) + 1, record)

    def added(self, index: int, entry: Entry, additions: int) -> None:
        """Keep in mind that the file has an answer with so many additions."""
        if isinstance(entry, AgentEntry):
            self._written[index] = entry
            self._additions[index] = additions

    def written(self, entries: Mapping[int, Entry]) -> None:
        """Keep in mind that the file has these entries whole."""
        for index, entry in entries.items():
            self._additions.pop(index, None)
            if isinstance(entry, AgentEntry):
                self._written[index] = entry
