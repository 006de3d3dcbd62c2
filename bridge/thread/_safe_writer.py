"""What stands between a call and its store: a store that raises costs the call no turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from routes._contain import CONTAINED

from .._entries import Entry

if TYPE_CHECKING:
    from ._protocol import Thread

log = structlog.get_logger()

MAX_KEPT = 10_000
"""How many entries are kept that cannot be written: some 5 MB, a day of talk."""


class SafeWriter:
    """Writes the entries of a call; keeps those that its store raised for, and tries them again."""

    def __init__(self, thread: Thread) -> None:
        self._thread = thread
        self._kept: dict[int, Entry] = {}
        self._tell: Callable[[str], None] | None = None
        self._trouble = ""

    def tell(self, on_trouble: Callable[[str], None]) -> None:
        """Tell in words, once for each time this begins, that entries cannot be saved."""
        self._tell = on_trouble
        self._thread.on_trouble = on_trouble
        if self._trouble:
            on_trouble(self._trouble)

    def write(self, index: int, entry: Entry) -> None:
        """Write an entry now, or keep it; never raises.

        Args:
            index: Its place in the history.
            entry: The entry; one more than ``MAX_KEPT`` that cannot be written is lost, and logged.
        """
        if self._try(index, entry):
            if self._kept:
                self.save()
        elif index in self._kept or len(self._kept) < MAX_KEPT:
            self._kept[index] = entry
        else:
            log.error("thread_entry_lost", index=index, kept=len(self._kept))

    def save(self) -> None:
        """Try again what was kept, in order, until the store raises."""
        for index in sorted(self._kept):
            if not self._try(index, self._kept[index]):
                return
        if self._trouble:
            self._trouble = ""
            log.info("thread_saved_again", pii_thread=self._thread.id)

    def close(self) -> None:
        """Try once more; what cannot be written now is lost, and logged."""
        self.save()
        if self._kept:
            log.error("thread_entries_lost", pii_thread=self._thread.id, entries=len(self._kept))

    def _try(self, index: int, entry: Entry) -> bool:
        try:
            with CONTAINED:
                self._thread.write(index, entry)
        except Exception as error:  # noqa: BLE001 - foreign code: told, and the call goes on
            self._begin_trouble(error)
            return False
        self._kept.pop(index, None)
        return True

    def _begin_trouble(self, error: Exception) -> None:
        if self._trouble:
            return
        self._trouble = (
            f"the conversation {self._thread.id!r} cannot be saved ({type(error).__name__}); "
            "it goes on, and saving is tried again"
        )
        log.error("thread_trouble", pii_thread=self._thread.id, exc_info=error)
        if self._tell is not None:
            self._tell(self._trouble)
