"""The default store of conversations: a SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from os import PathLike
from pathlib import Path

import trio

from bargein.routes.service_nursery import open_service_nursery

from ._conversation_protocol import ConversationInfo
from ._entry_records import from_record, with_additions
from ._errors import ConversationBusyError, ConversationError
from ._lock import ProcessLock
from ._sqlite_conversation import ReadEntry, SqliteConversation
from ._sqlite_file import SqliteDatabase
from ._store_conversation import check_id, trio_began_s

CLOSE_S = 5.0
"""How many seconds closing a conversation may take: one more attempt to save, and a last sync."""

LAST_SAVE_S = 3.0
"""How many of them the attempt to save may take."""


class SqliteConversations:
    """Stores conversations in a SQLite file, which several processes may share.

    A conversation is open in one call at a time, in one process.  The file opens with the first
    call and closes with the last.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        """Configure a store.

        Args:
            path: The file, created with the first conversation.  Its log (``-wal``, ``-shm``) and a
                folder of locks (``-locks``) are beside it; all must be on a local disk.
        """
        self._path = Path(path)
        self._database = SqliteDatabase(self._path)
        self._gate = trio.Lock()
        self._users = 0

    @asynccontextmanager
    async def open_conversation(self, id: str) -> AsyncIterator[SqliteConversation]:
        """Open a conversation, a new one if there is none; leaving the block closes it.

        If the file cannot be opened or read, the call continues: the conversation starts empty,
        reports the problem, and saves what was said once it can.

        Args:
            id: Its name, 1 to 256 characters.

        Raises:
            ConversationBusyError: It is already open, in this process or another.
            ConversationError: A newer version wrote it.
            ValueError: The id is empty, too long or not a string.
        """
        check_id(id)
        conversation = SqliteConversation(
            id, self._database, self._attach, trio_began_s=trio_began_s()
        )
        async with self._gate:
            self._users += 1
        try:
            await conversation.attach()
            async with open_service_nursery("the conversation is closed") as nursery:
                nursery.start_soon(conversation.tend, name="conversation")
                yield conversation
        finally:
            with trio.move_on_after(CLOSE_S, shield=True):
                await self._close(conversation)

    async def list(self) -> list[ConversationInfo]:
        """Return all conversations, the one that changed last first.

        Raises:
            ConversationError: The file cannot be read.
        """
        try:
            return await trio.to_thread.run_sync(self._database.list)
        except sqlite3.Error as error:
            raise ConversationError(f"{str(self._path)!r} cannot be read: {error}") from error

    async def delete(self, id: str) -> None:
        """Delete a conversation for good; it is no error if it does not exist.

        Args:
            id: Its name.

        Raises:
            ConversationBusyError: It is open in a call.
            ConversationError: The file cannot be written to.
        """
        check_id(id)
        try:
            await trio.to_thread.run_sync(self._delete, id)
        except (sqlite3.Error, OSError) as error:
            raise ConversationError(
                f"the conversation {id!r} cannot be deleted: {error}"
            ) from error

    def __repr__(self) -> str:
        return f"SqliteConversations({str(self._path)!r})"

    # --- implementation -------------------------------------------------------------------------

    def _delete(self, id: str) -> None:
        if not self._path.exists():
            return
        lock = self._lock(id)
        try:
            self._database.delete(id)
        finally:
            lock.release()

    def _lock(self, id: str) -> ProcessLock:
        try:
            return ProcessLock(self._path, id)
        except BlockingIOError:
            raise ConversationBusyError(id) from None

    async def _attach(self, conversation: SqliteConversation) -> None:
        """Lock a conversation and read it.

        Raises:
            sqlite3.Error, OSError: It cannot be locked or read now.
        """
        async with self._gate:
            await trio.to_thread.run_sync(self._attach_now, conversation)

    def _attach_now(self, conversation: SqliteConversation) -> None:
        conversation.lock_by(self._lock)
        if not self._database.is_open:
            self._database.open()
        rows, added = self._database.load(conversation.id)
        additions: dict[int, list[str]] = {}
        for number, _, record in added:
            additions.setdefault(number, []).append(record)
        read: list[ReadEntry] = []
        for number, record in rows:
            entry = from_record(record, conversation.trio_began_s)
            if entry is not None:
                pieces = additions.get(number, [])
                read.append(ReadEntry(number, with_additions(entry, pieces), len(pieces)))
        conversation.restore(read, last=max((number for number, _ in rows), default=-1))

    async def _close(self, conversation: SqliteConversation) -> None:
        with trio.move_on_after(LAST_SAVE_S):
            await conversation.close()
        async with self._gate:
            self._users -= 1
            if not self._users:
                await trio.to_thread.run_sync(self._database.close)
