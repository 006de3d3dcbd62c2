"""Protects a call from its store: a store that raises costs the call no answer.

Rules:
1. A series of failures is reported once, until every kept entry is written.
2. Entries for which the store raised are kept, each in its newest form, and retried: with the next
   entry that the store accepts, by a timer, and once more when the call ends.
3. A single entry that cannot be written does not block the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog
import trio

from bargein.routes.error_containment import CONTAINED

from ..history._entries import Entry

if TYPE_CHECKING:
    from ._protocol import Conversation

log = structlog.get_logger()

MAX_KEPT = 10_000
"""How many unwritten entries are kept: some 5 MB, a day of talk."""

FIRST_RETRY_S = 0.5
MAX_RETRY_S = 30.0
"""The first and the longest delay between two attempts, in seconds; it doubles each time."""

SAVE_ENTRIES = 100
"""How many kept entries are written in one step of the event loop: 10 ms, at 0.1 ms each."""

CLOSE_S = 2.0
"""How many seconds the last attempt may take when a call ends."""

CallAt = Callable[[object, float, Callable[[], None]], None]
"""Calls a plain function at a time: ``Router.call_at``."""


class SafeWriter:
    """Writes the entries of a call; keeps those for which its store raised, and retries them."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._unwritten: dict[int, Entry] = {}
        self._report: Callable[[str], None] | None = None
        self._call_at: CallAt | None = None
        self._trouble = ""
        self._wait_s = FIRST_RETRY_S

    def follow(self, call_at: CallAt, on_trouble: Callable[[str], None]) -> None:
        """Start to serve a call: retry by its timer, and report trouble to it.

        Args:
            call_at: The call's timer; it stops once the call is over.
            on_trouble: Called with a text for people, once for each series of failures.
        """
        self._report = on_trouble
        self._call_at = call_at
        self._conversation.on_trouble = on_trouble
        if self._trouble:
            on_trouble(self._trouble)
            self._try_later()

    def write(self, index: int, entry: Entry) -> None:
        """Write an entry now, or keep it; never raises.

        Args:
            index: Its index in the history.
            entry: The entry; beyond ``MAX_KEPT`` unwritten entries it is lost, and logged.
        """
        if self._try(index, entry):
            if self._trouble:
                self._save(takes=True)
        elif index in self._unwritten or len(self._unwritten) < MAX_KEPT:
            self._unwritten[index] = entry
        else:
            log.error("conversation_entry_lost", index=index, kept=len(self._unwritten))

    async def close(self) -> None:
        """Try everything once more; entries that still cannot be written are lost, and logged.

        Other calls continue meanwhile.  Cancelling this loses what was not tried yet.
        """
        try:
            for index in sorted(self._unwritten):
                self._try(index, self._unwritten[index])
                await trio.lowlevel.checkpoint()
        finally:
            if self._unwritten:
                lost = len(self._unwritten)
                log.error(
                    "conversation_entries_lost",
                    pii_conversation=self._conversation.id,
                    entries=lost,
                )

    def _save(self, takes: bool = False) -> None:
        """Try some of the kept entries, in order.

        Args:
            takes: Whether the store is known to accept entries, so that one it rejects is skipped.
        """
        for index in sorted(self._unwritten)[:SAVE_ENTRIES]:
            if self._try(index, self._unwritten[index]):
                takes = True
            elif not takes:
                return
        if not self._unwritten:
            self._trouble = ""
            self._wait_s = FIRST_RETRY_S
            log.info("conversation_saved_again", pii_conversation=self._conversation.id)

    def _save_by_timer(self) -> None:
        before = len(self._unwritten)
        self._save()
        self._wait_s = FIRST_RETRY_S if len(self._unwritten) < before else self._wait_s
        if self._unwritten:
            self._try_later()

    def _try_later(self) -> None:
        if self._call_at is not None:
            self._call_at(self, trio.current_time() + self._wait_s, self._save_by_timer)
            self._wait_s = min(2 * self._wait_s, MAX_RETRY_S)

    def _try(self, index: int, entry: Entry) -> bool:
        try:
            with CONTAINED:
                self._conversation.write(index, entry)
        except Exception as error:  # noqa: BLE001 - foreign code: reported, and the call continues
            self._start_trouble(error)
            return False
        self._unwritten.pop(index, None)
        return True

    def _start_trouble(self, error: Exception) -> None:
        if self._trouble:
            return
        self._trouble = (
            f"the conversation {self._conversation.id!r} cannot be saved ({type(error).__name__}); "
            "it continues, and saving is retried"
        )
        log.error("conversation_trouble", pii_conversation=self._conversation.id, exc_info=error)
        self._try_later()
        if self._report is not None:
            self._report(self._trouble)
