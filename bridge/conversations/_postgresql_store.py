"""A store of conversations in PostgreSQL, which servers on several machines may share.

Rule 1. A conversation has one connection of its own, used by one thread at a time; the event loop
never waits for it.
Rule 2. Its session holds an advisory lock, which PostgreSQL gives up when the session ends, in
whatever way: a process that is killed locks nobody out.
Rule 3. Each opening has a number.  Who comes back after its session was lost, and finds a higher
one, writes nothing: the conversation is another call's by now.
Rule 4. What is written within ``BATCH_S`` goes out together, each entry in its newest form.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, TypeVar, final

import trio

from bargein.routes.logs import get_logger
from bargein.routes.service_nursery import open_service_nursery

from ..history._entries import Entry
from ..history._repair import repair
from ._conversation_protocol import ConversationInfo
from ._entry_records import from_record
from ._errors import ConversationBusyError, ConversationError
from ._store_conversation import StoredConversation, check_id, trio_began_s

if TYPE_CHECKING:
    import psycopg

log = get_logger()

T = TypeVar("T")

BATCH_S = 0.02
"""For how many seconds entries wait for others that go out with them."""
ANSWER_S = 5.0
"""How many seconds the server may take for an answer, before its session is given up."""
OPEN_S = 2.0
"""How many seconds opening a conversation waits for the server, before the call begins without."""
CLOSE_S = 3.0
"""How many seconds the last attempt to save may take."""
FIRST_RETRY_S, MAX_RETRY_S = 0.05, 5.0
"""The first and the longest delay between two attempts, in seconds; it doubles each time."""
SAVE_ROWS = 200
"""How many entries go out in one transaction."""

# The ids are bytes, as PostgreSQL's texts hold no NUL.
_TABLES = """
CREATE TABLE IF NOT EXISTS bargein_conversations (
    id bytea PRIMARY KEY, opening bigint NOT NULL,
    created_s double precision, changed_s double precision
);
CREATE TABLE IF NOT EXISTS bargein_entries (
    conversation bytea NOT NULL REFERENCES bargein_conversations ON DELETE CASCADE,
    number integer NOT NULL, record text NOT NULL, PRIMARY KEY (conversation, number)
);
"""
_OPEN = """
INSERT INTO bargein_conversations (id, opening) VALUES (%s, 1)
ON CONFLICT (id) DO UPDATE SET opening = bargein_conversations.opening + 1 RETURNING opening
"""
_TOUCH = """
UPDATE bargein_conversations SET created_s = coalesce(created_s, %s), changed_s = %s WHERE id = %s
"""
_PUT = """
INSERT INTO bargein_entries VALUES (%s, %s, %s)
ON CONFLICT (conversation, number) DO UPDATE SET record = excluded.record
"""
_FORGET = "DELETE FROM bargein_conversations WHERE id = %s AND changed_s IS NULL"
_LIST = """
SELECT id, (SELECT count(*) FROM bargein_entries WHERE conversation = id), created_s, changed_s
FROM bargein_conversations WHERE changed_s IS NOT NULL ORDER BY changed_s DESC, id
"""


@final
class PostgresConversations:
    """Stores conversations in PostgreSQL, which servers on several machines may share.

    A conversation is open in one call at a time, on all machines.  Needs the extra ``postgres``.
    """

    def __init__(self, url: str) -> None:
        """Configure a store; it connects with the first call.

        Args:
            url: The database, such as ``postgresql://user:secret@db.example.com/calls``; two tables
                whose names begin with ``bargein_`` are created there.

        Raises:
            ImportError: The extra ``postgres`` is not installed.
        """
        try:
            import psycopg
        except ImportError as error:
            raise ImportError(
                "PostgresConversations needs psycopg: pip install 'bargein[postgres]'"
            ) from error
        self._psycopg = psycopg
        self._url = url
        self._has_tables = False

    @asynccontextmanager
    async def open_conversation(self, id: str) -> AsyncIterator[PostgresConversation]:
        """Open a conversation, a new one if there is none; leaving the block closes it.

        If the server cannot be reached, the call continues: the conversation starts empty, reports
        the problem, and saves what was said once it can.

        Args:
            id: Its name, 1 to 256 characters.

        Raises:
            ConversationBusyError: It is already open, on this machine or another.
            ConversationError: A newer version wrote it.
            ValueError: The id is empty, too long or not a string.
        """
        check_id(id)
        conversation = PostgresConversation(id, self)
        try:
            await conversation.attach()
            async with open_service_nursery("the conversation is closed") as nursery:
                nursery.start_soon(conversation.tend, name="conversation")
                yield conversation
        finally:
            with trio.CancelScope(shield=True):  # bounded by CLOSE_S
                await conversation.close()

    async def list(self) -> list[ConversationInfo]:
        """Return all conversations, the one that changed last first.

        Raises:
            ConversationError: The server cannot be reached.
        """

        def listed() -> list[ConversationInfo]:
            with closing(self.connect()) as connection:
                rows = connection.execute(_LIST).fetchall()
            return [ConversationInfo(bytes(row[0]).decode(), *row[1:]) for row in rows]

        return await self._asked(listed, "the conversations cannot be listed")

    async def delete(self, id: str) -> None:
        """Delete a conversation for good; it is no error if it does not exist.

        Args:
            id: Its name.

        Raises:
            ConversationBusyError: It is open in a call.
            ConversationError: The server cannot be reached.
        """
        check_id(id)

        def delete() -> None:
            with closing(self.connect()) as connection:
                lock(connection, id)
                connection.execute("DELETE FROM bargein_conversations WHERE id = %s", [id.encode()])

        await self._asked(delete, f"the conversation {id!r} cannot be deleted")

    # --- for its conversations --------------------------------------------------------------------

    @property
    def error(self) -> type[Exception]:
        """What its driver raises."""
        return self._psycopg.Error

    def connect(self) -> psycopg.Connection:
        """Return a new session, in which every statement is a transaction; blocks."""
        connection = self._psycopg.connect(
            self._url, autocommit=True, connect_timeout=max(2, round(OPEN_S))
        )
        if not self._has_tables:
            with connection.transaction():  # two that create a table at once collide
                connection.execute("SELECT pg_advisory_xact_lock(%s)", [_key("\0tables")])
                connection.execute(_TABLES)
            self._has_tables = True
        return connection

    async def _asked(self, function: Callable[[], T], failed: str) -> T:
        try:
            with trio.fail_after(ANSWER_S):
                return await trio.to_thread.run_sync(function, abandon_on_cancel=True)
        except (self.error, trio.TooSlowError) as error:
            raise ConversationError(f"{failed}: {_why(error)}") from error

    def __repr__(self) -> str:
        return "PostgresConversations(...)"  # the address may hold a password


@final
class PostgresConversation(StoredConversation):
    """A conversation that is open for one call.

    Made by ``PostgresConversations.open_conversation()``.
    """

    def __init__(self, id: str, store: PostgresConversations) -> None:
        super().__init__(id, trio_began_s=trio_began_s())
        self._store = store
        self._session: psycopg.Connection | None = None
        self._opening: int | None = None
        self._is_listed = False

    def write(self, index: int, entry: Entry) -> None:
        """Keep an entry, which goes out within ``BATCH_S``; never waits.

        Args:
            entry: The entry; after the conversation was closed it is lost, and logged.
        """
        if self._is_closed:
            self._report_late(index)
            return
        self._unwritten.keep(index, entry)
        self._woken.set()

    async def attach(self) -> None:
        """Lock and read the conversation; without the server, report that and continue.

        Raises:
            ConversationError: It is open elsewhere, or written by a newer version.
        """
        try:
            with trio.fail_after(OPEN_S):
                await self._attach()
        except (self._store.error, trio.TooSlowError) as error:
            self._report(error)
            self._woken.set()

    async def tend(self) -> None:
        """Save what is kept until cancelled."""
        while True:
            await self._woken.wait()
            await trio.sleep(BATCH_S)
            self._woken = trio.Event()
            wait_s = FIRST_RETRY_S
            while self._unwritten or self._opening is None:
                try:
                    await self._save()
                    await trio.sleep(BATCH_S if self._unwritten else 0)
                except (self._store.error, trio.TooSlowError, ConversationError) as error:
                    self._report(error)
                    await trio.sleep(wait_s)
                    wait_s = min(2 * wait_s, MAX_RETRY_S)
            self._report_saved()

    async def close(self) -> None:
        """Save what is left, and give up the lock; what cannot be saved now is lost, and logged."""
        self._is_closed = True
        try:
            with trio.fail_after(CLOSE_S):
                if self._unwritten or self._session is not None:
                    await self._save()
                if self._session is not None:
                    await self._in_thread(self._end(self._session))
        except (self._store.error, trio.TooSlowError, ConversationError) as error:
            log.error("conversation_not_saved", pii_conversation=self.id, error=_why(error))
        finally:
            self._unwritten.report_lost(all_kept=True)
            session, self._session = self._session, None
            if session is not None:
                session.close()  # sends a goodbye, and waits for nothing

    # --- implementation -------------------------------------------------------------------------

    async def _attach(self) -> None:
        made: list[psycopg.Connection] = []
        opening, rows = await self._in_thread(lambda: self._attach_now(made), made)
        [self._session] = made
        if self._opening is not None:
            return
        self._opening = opening
        self._next = max((number for number, _ in rows), default=-1) + 1
        if self._trouble:
            return  # the call started without them: its entries are added after them
        read = [(number, from_record(record, self.trio_began_s)) for number, record in rows]
        known = [(number, entry) for number, entry in read if entry is not None]
        self._numbers = [number for number, _ in known]
        self.entries = repair([entry for _, entry in known])
        for index, entry in enumerate(self.entries):
            if index >= len(known) or entry != known[index][1]:
                self.write(index, entry)

    def _attach_now(self, made: list[psycopg.Connection]) -> tuple[int, list[tuple[int, str]]]:
        session = self._store.connect()
        made.append(session)
        id = self.id.encode()
        try:
            lock(session, self.id)
            if self._opening is not None:
                query = "SELECT opening FROM bargein_conversations WHERE id = %s"
                if session.execute(query, [id]).fetchone() != (self._opening,):
                    raise ConversationError(
                        f"the conversation {self.id!r} was opened by another call, or deleted, "
                        "while the database could not be reached; this call writes no more to it"
                    )
                return self._opening, []
            query = "SELECT number, record FROM bargein_entries WHERE conversation = %s ORDER BY 1"
            rows = session.execute(query, [id]).fetchall()
            for _, record in rows:
                from_record(record, 0.0)  # refuses a newer version before it is opened
            found = session.execute(_OPEN, [id]).fetchone()
            assert found is not None
            return found[0], rows
        except BaseException:
            session.close()
            raise

    async def _save(self) -> None:
        if self._session is None:
            await self._attach()
        while some := self._unwritten.first(SAVE_ROWS):
            records = self._records(some)
            if records:
                assert self._session is not None
                await self._in_thread(self._write_rows(self._session, records))
                self._is_listed = True
            now = self._unwritten.first(SAVE_ROWS)  # those that changed keep their places
            unchanged = [index for index in records if now.get(index) is some[index]]
            for index in unchanged:
                self._unwritten.set_written(index)
            if records and not unchanged:
                return  # all of them have grown: they wait for the next batch

    def _write_rows(
        self, session: psycopg.Connection, records: dict[int, str]
    ) -> Callable[[], None]:
        id, now_s, touch = self.id.encode(), time.time(), not self._is_listed
        rows = [(id, self._number(index), record) for index, record in records.items()]

        def write() -> None:
            with session.transaction(), session.cursor() as cursor:
                cursor.executemany(_PUT, rows)
                if touch:
                    cursor.execute(_TOUCH, [now_s, now_s, id])

        return write

    def _end(self, session: psycopg.Connection) -> Callable[[], None]:
        id, now_s, is_listed = self.id.encode(), time.time(), self._is_listed

        def end() -> None:
            if is_listed:
                session.execute(_TOUCH, [now_s, now_s, id])
            else:
                session.execute(_FORGET, [id])

        return end

    async def _in_thread(
        self, function: Callable[[], T], made: Sequence[psycopg.Connection] = ()
    ) -> T:
        """Run a function of the session; if it fails or is left, the session is given up.

        A thread that was left goes on alone: until its session ends, nobody gets the lock.

        Args:
            made: The sessions that it opens, which are given up with it.
        """
        session, is_left, is_done = self._session, False, False

        def give_up() -> None:
            for one in (session, *made):
                if one is not None:
                    one.close()

        def run() -> T:
            nonlocal is_done
            try:
                return function()
            finally:
                is_done = True  # before the look at is_left, so that one of the two closes it
                if is_left:
                    give_up()

        try:
            with trio.fail_after(ANSWER_S):
                return await trio.to_thread.run_sync(run, abandon_on_cancel=True)
        except BaseException as error:
            is_left, self._session = True, None
            if is_done or not isinstance(error, (trio.Cancelled, trio.TooSlowError)):
                give_up()
            raise

    def _report(self, error: Exception) -> None:
        self._report_trouble(_why(error), is_loaded=self._opening is not None)


def lock(session: psycopg.Connection, id: str) -> None:
    """Lock a conversation for a session.

    Raises:
        ConversationBusyError: Another session has it.
    """
    if session.execute("SELECT pg_try_advisory_lock(%s)", [_key(id)]).fetchone() != (True,):
        raise ConversationBusyError(id)


def _key(id: str) -> int:
    hashed = hashlib.sha256(b"bargein conversation " + id.encode()).digest()
    return int.from_bytes(hashed[:8], "big", signed=True)


def _why(error: Exception) -> str:
    if isinstance(error, trio.TooSlowError):
        return "the database does not answer"
    return str(error).strip() or type(error).__name__
