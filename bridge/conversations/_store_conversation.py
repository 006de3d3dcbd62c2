"""What the open conversations of every store share: what waits, numbers, records and trouble."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import trio

from bargein.routes.error_containment import CONTAINED
from bargein.routes.logs import get_logger

from ..history._entries import Entry
from ._entry_backlog import EntryBacklog
from ._entry_records import to_record

MAX_ID_CHARS = 256

log = get_logger()


class StoredConversation:
    """An open conversation, as far as stores do not differ.

    Attributes:
        id: Its name in the store.
        entries: Its entries when it was opened, repaired; times are in seconds of trio's clock.
        trio_began_s: The Unix time at which trio's clock stood at 0.
    """

    def __init__(self, id: str, *, trio_began_s: float) -> None:
        self.id = id
        self.entries: tuple[Entry, ...] = ()
        self.trio_began_s = trio_began_s
        self._is_closed = False
        self._numbers: list[int] = []
        self._next = 0
        self._unwritten = EntryBacklog(id)
        self._woken = trio.Event()
        self._trouble = ""
        self._on_trouble: Callable[[str], None] | None = None

    @property
    def on_trouble(self) -> Callable[[str], None] | None:
        """Called with a text for people when entries cannot be saved; once for each series."""
        return self._on_trouble

    @on_trouble.setter
    def on_trouble(self, told: Callable[[str], None] | None) -> None:
        self._on_trouble = told
        if self._trouble and told is not None:
            told(self._trouble)

    def _records(self, entries: Mapping[int, Entry]) -> dict[int, str]:
        records: dict[int, str] = {}
        for index, entry in entries.items():
            try:
                with CONTAINED:
                    records[index] = to_record(entry, self.trio_began_s)
            except Exception as error:  # noqa: BLE001  # tool arguments can be anything; the call continues
                log.error("conversation_entry_unwritable", index=index, error=type(error).__name__)
                self._unwritten.forget(index)
        return records

    def _number(self, index: int) -> int:
        """Return the number of an entry in the file; unreadable records there keep theirs."""
        while len(self._numbers) <= index:
            self._numbers.append(self._next)
            self._next += 1
        return self._numbers[index]

    def _report_trouble(self, why: str, *, is_loaded: bool, **where: str) -> None:
        if self._trouble:
            return
        doing = "saved" if is_loaded else "loaded and saved"
        self._trouble = (
            f"the conversation {self.id!r} cannot be {doing} ({why}); it continues, and saving "
            "is retried"
        )
        log.error("conversation_trouble", pii_conversation=self.id, error=why, **where)
        if self._on_trouble is not None:
            self._on_trouble(self._trouble)

    def _report_saved(self) -> None:
        if self._trouble:
            self._trouble = ""
            log.info("conversation_saved_again", pii_conversation=self.id)
        self._unwritten.report_lost()

    def _report_late(self, index: int) -> None:
        log.error("conversation_entry_lost", pii_conversation=self.id, index=index, closed=True)


def check_id(id: str) -> None:
    """Check the name of a conversation.

    Raises:
        ValueError: It is empty, too long or not a string.
    """
    if not isinstance(id, str) or not 0 < len(id) <= MAX_ID_CHARS or not _is_text(id):
        raise ValueError(
            f"a conversation id is a text of 1 to {MAX_ID_CHARS} characters, not {id!r}"
        )


def _is_text(id: str) -> bool:
    try:
        id.encode()
    except UnicodeEncodeError:
        return False
    return True


def trio_began_s() -> float:
    """Return the Unix time at which trio's clock stood at 0."""
    # Wall-clock time relates the clocks of processes; it is read once for each call.
    return time.time() - trio.current_time()
