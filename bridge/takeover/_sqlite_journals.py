"""Journals of the calls of one machine: a SQLite file that its workers share.

Rule 1. A call has one owner, and a number that grows with each owner, the fence; whoever is not the
owner any more writes nothing, and is told.
Rule 2. An owner is alive as long as its lock is held, which the system ends with its process: no
heartbeat, and no clock.
Rule 3. A write waits for nobody: what cannot be written now is kept, within bounds, and written
later.  A call whose records exceed the bound goes on without a journal.
Rule 4. A write that has returned is with the operating system, so that killing a process loses
nothing.  Nothing is synced: whoever loses power loses all workers, too.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from secrets import token_hex
from typing import final

import trio

from bargein.routes.logs import get_logger
from bargein.routes.service_nursery import open_service_nursery

from ..conversations._lock import ProcessLock

BATCH_S = 0.02
"""How many seconds records are collected before they are written, unless somebody waits for it."""

LOCK_WAIT_S = 0.005
"""How many seconds a write may block the event loop for another worker: a quarter of a frame."""

OPEN_WAIT_S = 2.0
"""How many seconds opening and taking a call may wait for others; they run in a thread."""

RETRY_S = 0.02
"""How many seconds after a write that failed the next one is tried."""

MOST_WAITING_BYTES = 1_000_000
"""How much of one call may wait to be written: minutes of talk."""

MOST_WAITING_IN_ALL_BYTES = 64_000_000
"""How much of all calls of a process may wait."""

LOST_KEPT_S = 3600.0
"""After how many seconds the journal of a call that nobody took is deleted, when a worker starts.
Clients give up much earlier."""

_TABLES = """
CREATE TABLE IF NOT EXISTS calls (
    id TEXT PRIMARY KEY, owner TEXT, fence INTEGER NOT NULL, opened_s REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS records (
    call TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (call, key)
) WITHOUT ROWID;
"""
_OWNED = "SELECT 1 FROM calls WHERE id = ? AND owner = ? AND fence = ?"
_RECORDS = "SELECT key, value FROM records WHERE call = ?"
_PUT = "INSERT OR REPLACE INTO records VALUES (?, ?, ?)"
_DROP = "DELETE FROM records WHERE call = ? AND key = ?"
_FORGET = ("DELETE FROM records WHERE call = ?", "DELETE FROM calls WHERE id = ?")

log = get_logger()


@final
class SqliteJournal:
    """The journal of one call, for its owner; see ``CallJournal``.

    Attributes:
        fence: Grows with each process that takes the call.
        fenced: Set once another process has taken the call.
        waiting: The records to be written, by key; ``None`` drops one.
        is_lost: Whether too much waited, so that nobody can go on with the call.
    """

    def __init__(self, store: SqliteJournals, call_id: str, fence: int) -> None:
        """Own the call already."""
        self.call_id = call_id
        self.fence = fence
        self.fenced = trio.Event()
        self.waiting: dict[str, str | None] = {}
        self.waiting_bytes = 0
        self.is_lost = False
        self._store = store

    def write(self, key: str, value: str) -> None:
        """Write a record soon; all records of one step are written together."""
        self._note(key, value)

    def drop(self, key: str) -> None:
        """Remove a record soon."""
        self._note(key, None)

    def _note(self, key: str, value: str | None) -> None:
        if self.fenced.is_set() or self.is_lost:
            return
        before = self.waiting.get(key)
        grown = len(value or "") - len(before or "")
        self.waiting[key] = value
        self.waiting_bytes += grown
        self._store.note_waiting(self, grown)

    def forget_waiting(self) -> int:
        """Let go what waits; return how many bytes that were."""
        freed, self.waiting_bytes = self.waiting_bytes, 0
        self.waiting.clear()
        return freed

    async def kept(self) -> None:
        """Wait until everything put so far is kept, or nobody may write it any more."""
        while self.waiting and not self.fenced.is_set():
            await self._store.flushed()

    async def close(self, *, forget: bool) -> None:
        """Write what is left and give the call up; cancelling this leaves it to the next owner.

        Args:
            forget: Whether the call is over, so that nobody will take it.
        """
        try:
            if not forget:
                await self.kept()
            await self._store.release(self, forget=forget or self.is_lost)
        finally:
            self._store.let_go(self)


@final
class SqliteJournals:
    """The journals that the workers of one machine share; see ``JournalStore``."""

    def __init__(self, file: Path) -> None:
        """Use a file; ``open_sqlite_journals()`` opens it."""
        self._path = file
        self._owner = f"{os.getpid()}-{token_hex(8)}"
        self._lock = ProcessLock(self._path, self._owner)
        self._connection = sqlite3.connect(":memory:")  # until prepare()
        self._lost: list[str] = []
        self._journals: dict[str, SqliteJournal] = {}
        self._waiting_bytes = 0
        self._woken = trio.Event()
        self._hurried = trio.Event()
        self._flushed = trio.Event()
        self._is_in_trouble = False

    def _connect(self, wait_s: float) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=wait_s, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    # --- of calls ---------------------------------------------------------------------------------

    async def open(self, call_id: str) -> SqliteJournal:
        """Start the journal of a new call.

        Raises:
            sqlite3.Error: The file cannot be written to.
        """
        fence = await trio.to_thread.run_sync(self._open, call_id)
        return self._owned(call_id, fence)

    async def read(self, call_id: str) -> dict[str, str] | None:
        """Return the records of a call, and leave it where it is; ``None`` if it is unknown.

        Raises:
            sqlite3.Error: The file cannot be read.
        """
        return await trio.to_thread.run_sync(self._read, call_id)

    async def claim(self, call_id: str) -> tuple[SqliteJournal, dict[str, str]] | None:
        """Take a call and its records; ``None`` if it is unknown, or its owner is alive.

        Raises:
            sqlite3.Error: The file cannot be written to.
        """
        taken = await trio.to_thread.run_sync(self._claim, call_id)
        if taken is None:
            return None
        fence, records = taken
        return self._owned(call_id, fence), records

    def _owned(self, call_id: str, fence: int) -> SqliteJournal:
        journal = self._journals[call_id] = SqliteJournal(self, call_id, fence)
        return journal

    def _open(self, call_id: str) -> int:
        with closing(self._connect(OPEN_WAIT_S)) as connection:
            connection.execute(
                "INSERT INTO calls VALUES (?, ?, 1, ?)", (call_id, self._owner, time.time())
            )
        return 1

    def _read(self, call_id: str) -> dict[str, str] | None:
        with closing(self._connect(OPEN_WAIT_S)) as connection:
            return dict(connection.execute(_RECORDS, (call_id,)).fetchall()) or None

    def _claim(self, call_id: str) -> tuple[int, dict[str, str]] | None:
        with closing(self._connect(OPEN_WAIT_S)) as connection:
            # The lock of an owner is tried within the transaction: two that try it at once would
            # each take the other for the owner.
            connection.execute("BEGIN IMMEDIATE")
            found = connection.execute("SELECT owner, fence FROM calls WHERE id = ?", (call_id,))
            row = found.fetchone()
            if row is None or self._is_alive(row[0]):
                connection.execute("ROLLBACK")
                return None
            fence = row[1] + 1
            connection.execute(
                "UPDATE calls SET owner = ?, fence = ? WHERE id = ?", (self._owner, fence, call_id)
            )
            taken = fence, dict(connection.execute(_RECORDS, (call_id,)).fetchall())
            connection.execute("COMMIT")
            return taken

    def _is_alive(self, owner: str | None) -> bool:
        if owner is None:
            return False
        if owner == self._owner:
            return True
        try:
            ProcessLock(self._path, owner).release()
        except BlockingIOError:
            return True
        return False

    # --- of the file ------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Make the tables, and delete journals that nobody took for an hour; blocks."""
        connection = self._connection = self._connect(OPEN_WAIT_S)
        connection.executescript(_TABLES)
        connection.execute("BEGIN IMMEDIATE")
        old = connection.execute(
            "SELECT id, owner FROM calls WHERE coalesce((SELECT CAST(value AS REAL) FROM records"
            " WHERE call = id AND key = 'at'), opened_s) < ?",
            (time.time() - LOST_KEPT_S,),
        ).fetchall()
        for call_id, owner in old:
            if not self._is_alive(owner):
                self._forget(call_id)
        connection.execute("COMMIT")
        connection.execute(f"PRAGMA busy_timeout = {round(LOCK_WAIT_S * 1000)}")

    def close(self) -> None:
        """Close the file, and count as gone."""
        self._connection.close()
        self._lock.release()

    async def write_batches(self) -> None:
        """Write what waits, until cancelled."""
        while True:
            await self._woken.wait()
            with trio.move_on_after(BATCH_S):
                await self._hurried.wait()
            while not self._flush():  # noqa: ASYNC110 - another attempt, not an event
                await trio.sleep(RETRY_S)

    def note_waiting(self, journal: SqliteJournal, grown: int) -> None:
        """Count what waits, and let it be written; give a journal up that exceeds the bounds."""
        self._waiting_bytes += grown
        if (
            journal.waiting_bytes > MOST_WAITING_BYTES
            or self._waiting_bytes > MOST_WAITING_IN_ALL_BYTES
        ):
            log.error("journal_lost", call_id=journal.call_id, waiting=journal.waiting_bytes)
            self._waiting_bytes -= journal.forget_waiting()
            journal.is_lost = True
            self._lost.append(journal.call_id)
        self._woken.set()

    async def flushed(self) -> None:
        """Have what waits written now, and wait for it."""
        self._hurried.set()
        await self._flushed.wait()

    async def release(self, journal: SqliteJournal, *, forget: bool) -> None:
        """Give a call up, or forget it; try until it succeeds or is cancelled."""
        while not self._released(journal, forget):  # noqa: ASYNC110 - another attempt
            await trio.sleep(RETRY_S)

    def let_go(self, journal: SqliteJournal) -> None:
        """Write nothing more of a journal."""
        self._waiting_bytes -= journal.forget_waiting()
        if self._journals.get(journal.call_id) is journal:
            del self._journals[journal.call_id]

    def _released(self, journal: SqliteJournal, forget: bool) -> bool:
        owned = (journal.call_id, self._owner, journal.fence)
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            if self._connection.execute(_OWNED, owned).fetchone() is None:
                journal.fenced.set()
            elif forget:
                self._forget(journal.call_id)
            else:
                self._connection.execute(
                    "UPDATE calls SET owner = NULL WHERE id = ?", (journal.call_id,)
                )
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._fail(error)
            return False
        return True

    def _flush(self) -> bool:
        """Write what waits; False if that has to be tried again."""
        journals = [journal for journal in self._journals.values() if journal.waiting]
        fenced: list[SqliteJournal] = []
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for call_id in self._lost:
                self._forget(call_id)
            for journal in journals:
                owned = (journal.call_id, self._owner, journal.fence)
                if self._connection.execute(_OWNED, owned).fetchone() is None:
                    fenced.append(journal)
                    continue
                for key, value in journal.waiting.items():
                    if value is None:
                        self._connection.execute(_DROP, (journal.call_id, key))
                    else:
                        self._connection.execute(_PUT, (journal.call_id, key, value))
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._fail(error)
            return False
        self._lost.clear()
        for journal in journals:
            self._waiting_bytes -= journal.forget_waiting()
        for journal in fenced:
            journal.fenced.set()
        if self._is_in_trouble:
            self._is_in_trouble = False
            log.info("journal_works_again")
        self._woken, self._hurried = trio.Event(), trio.Event()
        self._flushed.set()
        self._flushed = trio.Event()
        return True

    def _forget(self, call_id: str) -> None:
        for statement in _FORGET:
            self._connection.execute(statement, (call_id,))

    def _fail(self, error: sqlite3.Error) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            return  # another worker writes; that takes milliseconds
        if not self._is_in_trouble:
            self._is_in_trouble = True
            log.error("journal_trouble", error=str(error))


@asynccontextmanager
async def open_sqlite_journals(file: Path) -> AsyncIterator[SqliteJournals]:
    """Open the journals in a file; leaving the block closes them for this process.

    Args:
        file: On a local disk, and made if it is not there; workers that use the same share calls.
            The locks of its owners are in a folder beside it.

    Raises:
        sqlite3.Error: The file cannot be opened.
        OSError: Its folder cannot be written to.
    """
    store = SqliteJournals(file)
    try:
        await trio.to_thread.run_sync(store.prepare)
        async with open_service_nursery("the journals are closed") as nursery:
            nursery.start_soon(store.write_batches, name="journals")
            yield store
    finally:
        store.close()
