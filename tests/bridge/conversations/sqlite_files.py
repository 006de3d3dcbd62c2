"""What the tests of SQLite files share."""

from __future__ import annotations

import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


def records(path: Path, conversation: str = "a") -> int:
    """Return how many records of a conversation are in the file, as another process sees them."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT count(*) FROM entries WHERE thread = ?"
        return connection.execute(query, [conversation]).fetchone()[0]


@contextmanager
def full_disk(limit: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size: what the system then says is what a full
    disk makes of SQLite's writes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def additions(path: Path, conversation: str = "a") -> int:
    """Return how many additions to answers of a conversation are in the file."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT count(*) FROM additions WHERE thread = ?"
        return connection.execute(query, [conversation]).fetchone()[0]
