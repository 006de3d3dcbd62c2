"""What stands between a call and its store: a store that raises costs the call no turn.

Rules:
1. Trouble is told once, until everything that was kept is written.
2. What the store raised for is kept, the newest form of each entry, and tried again: with the next
   entry that it takes, by a timer, and once more when the call ends.
3. An entry that alone cannot be written holds up no other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog
import trio

from bargein.routes.containment import CONTAINED

from ..history._entries import Entry

if TYPE_CHECKING:
    from ._protocol import Conversation

log = structlog.get_logger()

MAX_KEPT = 10_000
"""How many entries are kept that cannot be written: some 5 MB, a day of talk."""

FIRST_RETRY_S = 0.5
MAX_RETRY_S = 30.0
"""How long the timer waits between two tries: from the first, twice as long each time, to this."""

SAVE_ENTRIES = 100
"""How many kept entries are written in one step of the event loop: at 0.1 ms each, 10 ms."""

CLOSE_S = 2.0
"""How long the last try may take when a call ends, in seconds."""

CallAt = Callable[[object, float, Callable[[], None]], None]
"""Calls a plain function at a time: ``Router.call_at``."""


class SafeWriter:
    """Writes the entries of a call; keeps those that its store raised for, and tries them again."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._kept: dict[int, Entry] = {}
        self._tell: Callable[[str], None] | None = None
        self._call_at: CallAt | None = None
        self._trouble = ""
        self._wait_s = FIRST_RETRY_S

    def follow(self, call_at: CallAt, on_trouble: Callable[[str], None]) -> None:
        """Begin to serve a call: try again by its timer, and tell it of trouble.

        Args:
            call_at: The call's timer; it rings no more once the call is over.
            on_trouble: Told in words, once for each time this begins, that entries cannot be saved.
        """
        self._tell = on_trouble
        self._call_at = call_at
        self._conversation.on_trouble = on_trouble
        if self._trouble:
            on_trouble(self._trouble)
            self._try_later()

    def write(self, index: int, entry: Entry) -> None:
        """Write an entry now, or keep it; never raises.

        Args:
            index: Its place in the history.
            entry: The entry; one more than ``MAX_KEPT`` that cannot be written is lost, and logged.
        """
        if self._try(index, entry):
            if self._trouble:
                self._save(takes=True)
        elif index in self._kept or len(self._kept) < MAX_KEPT:
            self._kept[index] = entry
        else:
            log.error("conversation_entry_lost", index=index, kept=len(self._kept))

    async def close(self) -> None:
        """Try everything once more; what cannot be written now is lost, and logged.

        Other calls go on meanwhile.  When cancelled, what was not tried yet is lost.
        """
        try:
            for index in sorted(self._kept):
                self._try(index, self._kept[index])
                await trio.lowlevel.checkpoint()
        finally:
            if self._kept:
                lost = len(self._kept)
                log.error(
                    "conversation_entries_lost",
                    pii_conversation=self._conversation.id,
                    entries=lost,
                )

    def _save(self, takes: bool = False) -> None:
        """Try some of what was kept, in order.

        Args:
            takes: Whether the store is known to take entries, so that one which it refuses is
                passed over.
        """
        for index in sorted(self._kept)[:SAVE_ENTRIES]:
            if self._try(index, self._kept[index]):
                takes = True
            elif not takes:
                return
        if not self._kept:
            self._trouble = ""
            self._wait_s = FIRST_RETRY_S
            log.info("conversation_saved_again", pii_conversation=self._conversation.id)

    def _save_by_timer(self) -> None:
        before = len(self._kept)
        self._save()
        self._wait_s = FIRST_RETRY_S if len(self._kept) < before else self._wait_s
        if self._kept:
            self._try_later()

    def _try_later(self) -> None:
        if self._call_at is not None:
            self._call_at(self, trio.current_time() + self._wait_s, self._save_by_timer)
            self._wait_s = min(2 * self._wait_s, MAX_RETRY_S)

    def _try(self, index: int, entry: Entry) -> bool:
        try:
            with CONTAINED:
                self._conversation.write(index, entry)
        except Exception as error:  # noqa: BLE001 - foreign code: told, and the call goes on
            self._begin_trouble(error)
            return False
        self._kept.pop(index, None)
        return True

    def _begin_trouble(self, error: Exception) -> None:
        if self._trouble:
            return
        self._trouble = (
            f"the conversation {self._conversation.id!r} cannot be saved ({type(error).__name__}); "
            "it goes on, and saving is tried again"
        )
        log.error("conversation_trouble", pii_conversation=self._conversation.id, exc_info=error)
        self._try_later()
        if self._tell is not None:
            self._tell(self._trouble)
