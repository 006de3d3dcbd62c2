"""The file that keeps conversations: SQLite in WAL mode, with one connection that writes.

Rules:
1. A write that has returned is with the operating system: killing the process loses nothing.  Only
   a power cut may lose the last ones (``synchronous=NORMAL``); the file stays sound even then.
2. What is written is moved from the log into the database, and synced, by ``checkpoint()``, which
   is called in a thread.  A write on the event loop waits for the disk only where it is the first
   after a checkpoint: it begins the log anew, which SQLite syncs once.
3. It waits at most `LOCK_WAIT_S` for another process that is writing.
4. An entry is its record in `entries` and, behind that, its additions.  Writing its record anew
   removes the additions in the same transaction, so a reader never sees old ones behind a new one.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from ._errors import ConversationError
from ._protocol import ConversationInfo

Row = tuple[int, str]
"""The number of an entry within its conversation, and its record."""

Addition = tuple[int, int, str]
"""The number of an entry, that of one of its additions, from 1, and the record of the addition."""

LOCK_WAIT_S = 0.005
"""How long a write may hold up the event loop for another process: a quarter of an audio frame."""
OPEN_WAIT_S = 2.0
"""How long opening, listing and deleting wait for others; they run in a thread."""
CHECKPOINT_ROWS = 2000
"""How many writes make a checkpoint due: some 16 MB of log, and minutes of ten calls."""
MAX_LOG_PAGES = 16_384
"""How long the log may be, in pages of 4 kB.  Where so much is written that it never rests, it is
begun anew while writes wait for the disk, or are kept."""
MODE = 0o600
"""Of the files: what people said is for the user who runs the agent."""
SCHEMA = 2
"""Of the file.  Format 1 had no additions; such a file is taken as it is, and becomes format 2."""

# The tables and columns keep the names that files of format 1 have.
_TABLES = """
CREATE TABLE IF NOT EXISTS threads (
    id TEXT PRIMARY KEY, created_s REAL NOT NULL, changed_s REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entries (
    thread TEXT NOT NULL, number INTEGER NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (thread, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS additions (
    thread TEXT NOT NULL, number INTEGER NOT NULL, place INTEGER NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (thread, number, place)
) WITHOUT ROWID;
"""
_TOUCH = """
INSERT INTO threads VALUES (:id, :at_s, :at_s)
ON CONFLICT (id) DO UPDATE SET changed_s = excluded.changed_s
"""
_PUT = """
INSERT INTO entries VALUES (?, ?, ?)
ON CONFLICT (thread, number) DO UPDATE SET record = excluded.record
"""
_ADD = "INSERT INTO additions VALUES (?, ?, ?, ?)"
_MERGE = "DELETE FROM additions WHERE thread = ? AND number = ?"
_ROWS = "SELECT number, record FROM entries WHERE thread = ? ORDER BY number"
_ADDITIONS = """
SELECT number, place, record FROM additions WHERE thread = ? ORDER BY number, place
"""
_LIST = """
SELECT id, (SELECT count(*) FROM entries WHERE thread = id), created_s, changed_s
FROM threads ORDER BY changed_s DESC, id
"""


class Database:
    """The connection of one process; its methods block.

    Only what is said to run beside writes may run in a thread while the event loop writes.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._rows = 0

    @property
    def is_open(self) -> bool:
        """Whether it can be written to."""
        return self._connection is not None

    @property
    def is_due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return self._rows >= CHECKPOINT_ROWS

    def open(self) -> None:
        """Open the file, a new one if there is none.

        Raises:
            sqlite3.Error: It cannot be opened, or written to.
            ConversationError: A newer version has made it.
        """
        _keep_private(self._path)
        connection = self._connect()
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version > SCHEMA:
                raise ConversationError(
                    f"{str(self._path)!r} was made by a newer version of bargein (format "
                    f"{version}, known up to {SCHEMA}); use that version"
                )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_TABLES)
            if version != SCHEMA:
                connection.execute(f"PRAGMA user_version = {SCHEMA}")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            connection.execute(f"PRAGMA busy_timeout = {round(LOCK_WAIT_S * 1000)}")
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def close(self) -> None:
        """Close the file; moves what is in the log into the database."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def load(self, conversation: str) -> tuple[list[Row], list[Addition]]:
        """Return a conversation's records and the additions to them, in order; runs beside writes.

        The conversation must be locked: two reads see one state only while nobody writes to it.

        Raises:
            sqlite3.Error: They cannot be read.
        """
        with closing(self._connect()) as connection:
            rows = connection.execute(_ROWS, [conversation]).fetchall()
            return rows, connection.execute(_ADDITIONS, [conversation]).fetchall()

    def write(
        self,
        conversation: str,
        rows: Sequence[Row],
        *,
        merged: Sequence[int] = (),
        touch: bool = False,
    ) -> None:
        """Write records of a conversation, all or none.

        Args:
            conversation: Its name.
            rows: The records.
            merged: The numbers of those among them whose additions are removed.
            touch: Whether to list the conversation, as changed now.

        Raises:
            sqlite3.Error: They cannot be written now.
        """
        connection = self._opened()
        if len(rows) == 1 and not touch and not merged:
            connection.execute(_PUT, (conversation, *rows[0]))
        else:
            _write_all(connection, conversation, rows, merged, touch=touch)
        self._rows += len(rows)

    def add(self, conversation: str, addition: Addition) -> None:
        """Write an addition to an entry of a conversation.

        Args:
            conversation: Its name.
            addition: The addition.

        Raises:
            sqlite3.Error: It cannot be written now.
        """
        self._opened().execute(_ADD, (conversation, *addition))
        self._rows += 1

    def checkpoint(self) -> None:
        """Move what was written from the log into the database; runs beside writes.

        Raises:
            sqlite3.Error: It cannot now; nothing is lost.
        """
        self._rows = 0
        with closing(self._connect()) as connection:
            query = "PRAGMA wal_checkpoint(PASSIVE)"
            _, pages, _ = connection.execute(query).fetchone()
            if pages > MAX_LOG_PAGES:
                connection.execute("PRAGMA wal_checkpoint(RESTART)")

    def list(self) -> list[ConversationInfo]:
        """Return all conversations; needs no ``open()``, and runs beside writes.

        Raises:
            sqlite3.Error: They cannot be read.
        """
        if not self._path.exists():
            return []
        with closing(self._connect()) as connection:
            return [ConversationInfo(*row) for row in connection.execute(_LIST)]

    def delete(self, conversation: str) -> None:
        """Delete a conversation of a file that exists; needs no ``open()``, and runs beside writes.

        Raises:
            sqlite3.Error: It cannot be deleted now.
        """
        with closing(self._connect()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM entries WHERE thread = ?", [conversation])
            connection.execute("DELETE FROM additions WHERE thread = ?", [conversation])
            connection.execute("DELETE FROM threads WHERE id = ?", [conversation])
            connection.execute("COMMIT")

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise sqlite3.OperationalError("the database is not open")
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        # Opened in a thread, used on the event loop: never by two at a time.
        return sqlite3.connect(
            self._path, timeout=OPEN_WAIT_S, isolation_level=None, check_same_thread=False
        )


def _keep_private(path: Path) -> None:
    """Make a file for this user alone, or one of an older version so.

    The log and the index beside it get the mode of the database from SQLite.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, MODE))
        for one in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
            if one.exists() and one.stat().st_mode & ~MODE & 0o777:
                one.chmod(MODE)
    except OSError:
        return  # SQLite says what is wrong, or the file is another user's who shares it


def _write_all(
    connection: sqlite3.Connection,
    conversation: str,
    rows: Iterable[Row],
    merged: Iterable[int],
    *,
    touch: bool,
) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.executemany(_PUT, ((conversation, *row) for row in rows))
        connection.executemany(_MERGE, ((conversation, number) for number in merged))
        if touch:
            connection.execute(_TOUCH, {"id": conversation, "at_s": time.time()})
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
