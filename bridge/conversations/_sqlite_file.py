"""The file that stores conversations: SQLite in WAL mode, with one connection that writes.

Rules:
1. A write that has returned is with the operating system, so killing the process loses nothing.
   Only a power cut may lose the last writes (``synchronous=NORMAL``); the file stays valid even
   then.
2. ``checkpoint()``, called in a thread, moves writes from the log into the database and syncs them.
   A write on the event loop waits for the disk only if it is the first after a checkpoint: it
   restarts the log, which SQLite syncs once.
3. A write waits at most ``LOCK_WAIT_S`` for another process that is writing.
4. An entry is its record in ``entries`` followed by its additions.  Rewriting its record removes
   the additions in the same transaction, so a reader never sees old additions after a new record.
5. Nothing is written while the path names another file than the one that was opened: the system
   would take every write to a deleted file, and it would be gone with the process.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from ._conversation_protocol import ConversationInfo
from ._errors import ConversationError

StoredRow = tuple[int, str]
"""The number of an entry within its conversation, and its record."""

Addition = tuple[int, int, str]
"""The number of an entry, the number of one of its additions, from 1, and the addition's record."""

LOCK_WAIT_S = 0.005
"""How many seconds a write may block the event loop for another process: a quarter of an audio
frame."""
OPEN_WAIT_S = 2.0
"""How many seconds opening, listing and deleting wait for others; they run in a thread."""
CHECKPOINT_ROWS = 2000
"""After how many writes a checkpoint is due: some 16 MB of log, and minutes of ten calls."""
MAX_LOG_PAGES = 16_384
"""How long the log may be, in pages of 4 kB.  If writes never pause, the log is restarted at this
size while they wait for the disk or are kept."""
MODE = 0o600
"""The mode of the files: what people said is only for the user who runs the agent."""
SCHEMA = 2
"""The format of the file.  Format 1 had no additions; such a file becomes format 2 as it is."""

# The names of tables and columns are those of format 1.
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


class SqliteDatabase:
    """The connection of one process; its methods block.

    Only methods documented to run beside writes may run in a thread while the event loop writes.
    All raise ``sqlite3.OperationalError`` if the file is a link, or no longer the one that was
    opened.

    Attributes:
        path: Its file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._rows = 0

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    @property
    def is_due(self) -> bool:
        return self._rows >= CHECKPOINT_ROWS

    def open(self) -> None:
        """Open the file, a new one if there is none.

        Raises:
            sqlite3.Error: It cannot be opened or written to.
            ConversationError: A newer version created it.
        """
        self._refuse_links()
        _keep_private(self.path)
        connection = self._connect()
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version > SCHEMA:
                raise ConversationError(
                    f"{str(self.path)!r} was made by a newer version of bargein (format "
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
        self._identity = _identity_of(self.path)

    def close(self) -> None:
        """Close the file; this moves the log into the database."""
        connection, self._connection = self._connection, None
        self._identity = None
        if connection is not None:
            connection.close()

    def load(self, conversation: str) -> tuple[list[StoredRow], list[Addition]]:
        """Return a conversation's records and their additions, in order; runs beside writes.

        The conversation must be locked, so that both reads see the same state.

        Raises:
            sqlite3.Error: They cannot be read.
        """
        with closing(self._connect()) as connection:
            rows = connection.execute(_ROWS, [conversation]).fetchall()
            return rows, connection.execute(_ADDITIONS, [conversation]).fetchall()

    def write(
        self,
        conversation: str,
        rows: Sequence[StoredRow],
        *,
        merged: Sequence[int] = (),
        touch: bool = False,
    ) -> None:
        """Write records of a conversation, all or none.

        Args:
            merged: The numbers of the records whose additions are removed.
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

        Raises:
            sqlite3.Error: It cannot be written now.
        """
        self._opened().execute(_ADD, (conversation, *addition))
        self._rows += 1

    def checkpoint(self) -> None:
        """Move writes from the log into the database; runs beside writes.

        Raises:
            sqlite3.Error: That is impossible now; nothing is lost.
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
        self._refuse_links()
        if not self.path.exists():
            return []
        with closing(self._connect()) as connection:
            return [ConversationInfo(*row) for row in connection.execute(_LIST)]

    def delete(self, conversation: str) -> None:
        """Delete a conversation from an existing file; needs no ``open()``, and runs beside writes.

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
        self._check_place()
        return self._connection

    def _check_place(self) -> None:
        """Raise an error if the path names another file than the one that was opened, or a link."""
        found = _identity_of(self.path)
        if found != self._identity:
            self._refuse_links()
            if self._identity is None:
                return
            what = "is gone" if found is None else "was replaced by another file"
            raise sqlite3.OperationalError(
                f"{str(self.path)!r} {what} while it was open, and nothing more is written to it; "
                "put the file back, or restart the server to begin with what is there now"
            )

    def _refuse_links(self) -> None:
        for path in _files_of(self.path):
            if path.is_symlink():
                raise sqlite3.OperationalError(
                    f"{str(path)!r} is a link, and what people said is written to no file that "
                    "somebody else may choose; remove the link, or name the file that it leads to"
                )

    def _connect(self) -> sqlite3.Connection:
        self._refuse_links()  # later, SQLite keeps all three files open
        self._check_place()
        # Opened in a thread and used on the event loop, but never by both at a time.
        return sqlite3.connect(
            self.path, timeout=OPEN_WAIT_S, isolation_level=None, check_same_thread=False
        )


def _files_of(path: Path) -> tuple[Path, ...]:
    """Return the database, its log, and the index of the log."""
    return path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))


def _identity_of(path: Path) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:  # it, or its folder, is not there
        return None
    return found.st_dev, found.st_ino


def _keep_private(path: Path) -> None:
    """Create a file for this user only, or restrict one that an older version created.

    SQLite gives the log and the index beside it the mode of the database.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, MODE))
        for one in _files_of(path):
            if one.exists() and one.stat().st_mode & ~MODE & 0o777:
                one.chmod(MODE)
    except OSError:
        return  # SQLite will say what is wrong, or another user owns the file and shares it


def _write_all(
    connection: sqlite3.Connection,
    conversation: str,
    rows: Iterable[StoredRow],
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
