"""The journals of all workers of one machine, in one SQLite file of their parent's.

A worker that is killed loses nothing that its system has, so the file is not synced: it does not
outlive the machine, and need not.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, final

import trio

from bargein.routes.logs import get_logger

FLUSH_S = 0.02
"""How often what waits is written, in seconds."""

BUSY_S = 1.0
"""How many seconds a write waits for that of another worker."""

CLAIM_S = 0.1
"""After how many seconds a client whose call another worker has just claimed is led there."""

_TABLES = """
CREATE TABLE IF NOT EXISTS calls (id TEXT PRIMARY KEY, fence INTEGER NOT NULL, owner TEXT);
CREATE TABLE IF NOT EXISTS records
    (id TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (id, key)) WITHOUT ROWID;
"""

log = get_logger()


@final
class SqliteJournal:
    """The journal of one call that this worker has; see ``CallJournal``."""

    __slots__ = ("_store", "call_id", "fence", "fenced", "waiting")

    def __init__(self, store: SqliteJournals, call_id: str, fence: int) -> None:
        """Start with nothing to write."""
        self._store = store
        self.call_id = call_id
        self.fence = fence
        self.fenced = trio.Event()
        self.waiting: dict[str, str | None] = {}

    def write(self, key: str, value: str) -> None:
        """Write a record soon."""
        self.waiting[key] = value

    def drop(self, key: str) -> None:
        """Remove a record soon."""
        self.waiting[key] = None

    async def kept(self) -> None:
        """Write all that waits now."""
        self._store.flush(self)
        await trio.lowlevel.checkpoint()

    async def close(self, *, forget: bool) -> None:
        """Write what is left and give the call up."""
        self._store.close(self, forget=forget)
        await trio.lowlevel.checkpoint()


@final
class SqliteJournals:
    """The journals in one file; see ``JournalStore``.

    A call is claimed from a process that is gone, and from no other.
    """

    def __init__(self, file: Path) -> None:
        """Open the file, and make it if it is not there.

        Raises:
            sqlite3.Error: It cannot be opened.
        """
        self._database = sqlite3.connect(file, timeout=BUSY_S, isolation_level=None)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=OFF")
        self._database.executescript(_TABLES)
        self._owner = f"{os.getpid()}/{_started(os.getpid())}"
        self._open: dict[SqliteJournal, None] = {}

    async def run(self) -> NoReturn:
        """Write what waits, until cancelled."""
        while True:
            await trio.sleep(FLUSH_S)
            for journal in tuple(self._open):
                self.flush(journal)

    async def open(self, call_id: str) -> SqliteJournal:
        """Start the journal of a new call."""
        await trio.lowlevel.checkpoint()
        fence = time.time_ns() // 1000
        self._database.execute(
            "INSERT OR REPLACE INTO calls VALUES (?, ?, ?)", (call_id, fence, self._owner)
        )
        return self._opened(call_id, fence)

    async def claim(self, call_id: str) -> tuple[SqliteJournal, dict[str, str]] | None:
        """Take a call and its records; ``None`` if it is unknown, or its owner is alive."""
        await trio.lowlevel.checkpoint()
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            row = self._database.execute(
                "SELECT fence, owner FROM calls WHERE id = ?", (call_id,)
            ).fetchone()
            if row is None:
                return None
            is_free = row[1] is None or not _is_alive(row[1])
            fence = max(row[0] + 1, time.time_ns() // 1000)
            if is_free:
                self._database.execute(
                    "UPDATE calls SET fence = ?, owner = ? WHERE id = ?",
                    (fence, self._owner, call_id),
                )
        if not is_free:
            await trio.sleep(CLAIM_S)
            return None
        found = self._database.execute("SELECT key, value FROM records WHERE id = ?", (call_id,))
        return self._opened(call_id, fence), dict(found.fetchall())

    def _opened(self, call_id: str, fence: int) -> SqliteJournal:
        journal = SqliteJournal(self, call_id, fence)
        self._open[journal] = None
        return journal

    def flush(self, journal: SqliteJournal) -> None:
        """Write what waits of a journal, in one transaction; what fails is tried again."""
        if not journal.waiting or journal.fenced.is_set():
            return
        try:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                if self._is_mine(journal):
                    self._write(journal.call_id, journal.waiting)
                else:
                    journal.fenced.set()
        except sqlite3.Error as error:
            log.error("journal_not_written", error=str(error))
            return
        journal.waiting.clear()

    def _is_mine(self, journal: SqliteJournal) -> bool:
        row = self._database.execute(
            "SELECT fence FROM calls WHERE id = ?", (journal.call_id,)
        ).fetchone()
        return row is not None and row[0] == journal.fence

    def _write(self, call_id: str, waiting: dict[str, str | None]) -> None:
        kept = [(call_id, key, value) for key, value in waiting.items() if value is not None]
        gone = [(call_id, key) for key, value in waiting.items() if value is None]
        self._database.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?)", kept)
        self._database.executemany("DELETE FROM records WHERE id = ? AND key = ?", gone)

    def close(self, journal: SqliteJournal, *, forget: bool) -> None:
        """Give a call up; with `forget`, nobody can claim it any more."""
        self.flush(journal)
        self._open.pop(journal, None)
        about = (journal.call_id, journal.fence)
        with suppress(sqlite3.Error), self._database:
            self._database.execute("BEGIN IMMEDIATE")
            if not self._is_mine(journal):
                return
            if forget:
                self._database.execute("DELETE FROM records WHERE id = ?", about[:1])
                self._database.execute("DELETE FROM calls WHERE id = ? AND fence = ?", about)
            else:
                self._database.execute(
                    "UPDATE calls SET owner = NULL WHERE id = ? AND fence = ?", about
                )


def _is_alive(owner: str) -> bool:
    pid, _, started = owner.partition("/")
    return _started(int(pid)) == started


def _started(pid: int) -> str:
    """Return when a process started, in its system's ticks; empty for one that is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(") ")[2].split()
    except OSError:
        return ""
    return "" if stat[0] in "ZX" else stat[19]
