"""The entries that a store has not taken yet: bounded, and exact about what was lost."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import islice

from bargein.routes.error_containment import CONTAINED
from bargein.routes.logs import get_logger

from ..history._entries import AgentEntry, Entry, NoteEntry, UserEntry

log = get_logger()

MAX_KEPT = 50_000
"""How many unwritten entries are kept for one call: days of talk."""

MAX_KEPT_BYTES = 32 * 1024 * 1024
"""How many bytes of text unwritten entries may have together, for one call."""

RANGES_A_LINE = 100
"""How many ranges of lost entries one log line names; usually there is one range."""


class EntryBacklog:
    """Keeps the newest form of entries until they are written, and notes which it could not keep.

    Once the bounds are reached, what is kept stays: later entries are lost, and later forms of kept
    ones.
    """

    def __init__(self, conversation: str) -> None:
        """Keep nothing yet."""
        self._conversation = conversation
        self._entries: dict[int, Entry] = {}
        self._sizes: dict[int, int] = {}
        self._bytes = 0
        self._lost: set[int] = set()

    def __len__(self) -> int:
        return len(self._entries)

    def keep(self, index: int, entry: Entry) -> None:
        """Keep an entry if there is room.

        Args:
            index: Its index in the history; an earlier form of it is replaced.
        """
        size = _bytes_of(entry)
        total = self._bytes - self._sizes.get(index, 0) + size
        if total > MAX_KEPT_BYTES or (index not in self._entries and len(self) >= MAX_KEPT):
            if not self._lost:
                log.error(
                    "conversation_entry_lost",
                    pii_conversation=self._conversation,
                    index=index,
                    kept=len(self),
                    kept_bytes=self._bytes,
                )
            self._lost.add(index)
            return
        self._entries[index], self._sizes[index], self._bytes = entry, size, total
        self._lost.discard(index)

    def first(self, count: int) -> dict[int, Entry]:
        """Return the entries that have waited longest, by their index."""
        return dict(islice(self._entries.items(), count))

    def forget(self, index: int) -> None:
        """Forget an entry that will not be written from here."""
        if self._entries.pop(index, None) is not None:
            self._bytes -= self._sizes.pop(index)

    def set_written(self, index: int) -> None:
        """Forget an entry, because its newest form was written."""
        self.forget(index)
        self._lost.discard(index)

    def move_to_end(self, indexes: Iterable[int]) -> None:
        """Let some entries wait behind all others."""
        for index in indexes:
            self._entries[index] = self._entries.pop(index)

    def report_lost(self, *, all_kept: bool = False) -> None:
        """Log which entries were lost since this was last called, if any.

        Args:
            all_kept: Whether the kept ones are lost, too, because nobody will write them.
        """
        lost = sorted(self._lost.union(self._entries) if all_kept else self._lost)
        self._lost.clear()
        ranges = _ranges(lost)
        while named := list(islice(ranges, RANGES_A_LINE)):
            log.error(
                "conversation_entries_lost",
                pii_conversation=self._conversation,
                entries=sum(last - first + 1 for first, last in named),
                indexes=", ".join(f"{a}-{b}" if a < b else f"{a}" for a, b in named),
            )


def _ranges(indexes: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of each series of successive indexes."""
    first = last = None
    for index in indexes:
        if first is not None and last is not None and index > last + 1:
            yield first, last
            first = None
        first, last = index if first is None else first, index
    if first is not None and last is not None:
        yield first, last


def _bytes_of(entry: Entry) -> int:
    """Return how many bytes the texts of an entry take in memory."""
    match entry:
        case AgentEntry():
            return sys.getsizeof(entry.generated) + sys.getsizeof(entry.heard)
        case UserEntry() | NoteEntry():
            return sys.getsizeof(entry.content)
    try:
        with CONTAINED:
            return sys.getsizeof(repr(entry))
    except Exception:  # noqa: BLE001 - the arguments of a tool can be anything; it has no text then
        return 0
