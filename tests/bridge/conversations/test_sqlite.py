"""Conversations in a SQLite file."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing

import pytest
import structlog
import trio

from bargein import AgentEntry, History, JobEntry, UserEntry
from bargein.conversations import (
    ConversationBusyError,
    ConversationError,
    SqliteConversations,
)
from bargein.events import ToolCall, ToolResult

from .sqlite_files import additions, full_disk, records


def words(entries) -> list[str]:
    return [entry.content for entry in entries]


async def test_a_conversation_comes_back(tmp_path):
    """What was written is there when it is opened again, in order and as last written."""
    conversations = SqliteConversations(tmp_path / "calls.db")
    async with conversations.open_conversation("a") as conversation:
        assert (conversation.id, conversation.entries) == ("a", ())
        now_s = trio.current_time()
        conversation.write(0, UserEntry(now_s, "one"))
        conversation.write(1, UserEntry(now_s, "two"))
        conversation.write(0, UserEntry(now_s, "uno"))
        assert records(tmp_path / "calls.db") == 2
    async with conversations.open_conversation("a") as conversation:
        assert words(conversation.entries) == ["uno", "two"]
        assert abs(conversation.entries[0].at_s - now_s) < 0.01
        conversation.write(2, UserEntry(now_s, "three"))
    async with (
        conversations.open_conversation("a") as conversation,
        conversations.open_conversation("b") as other,
    ):
        assert words(conversation.entries) == ["uno", "two", "three"]
        assert other.entries == ()


async def test_the_error_of_a_block_is_not_wrapped(tmp_path):
    """What the block of an open conversation raises arrives as it is, not in an exception group."""
    with pytest.raises(ZeroDivisionError):
        async with SqliteConversations(tmp_path / "calls.db").open_conversation("a"):
            _ = 1 / 0


async def test_a_write_is_with_the_system_when_it_returns(tmp_path):
    """Another connection sees it at once, whatever becomes of this process."""
    conversations = SqliteConversations(tmp_path / "calls.db")
    async with conversations.open_conversation("a") as conversation:
        for number in range(5):
            conversation.write(number, UserEntry(0.0, "x"))
            assert records(tmp_path / "calls.db") == number + 1


async def test_a_history_writes_each_change(tmp_path):
    """Wired to a conversation, a history is in the file after every step."""
    conversations = SqliteConversations(tmp_path / "calls.db")
    async with conversations.open_conversation("a") as conversation:
        history = History(conversation.entries)
        history.on_change = conversation.write
        history.add_user("hi")
        history.add_tool_call(ToolCall(name="look", id="7"), answer=1)
        history.mark_tool("7", "committing")
        history.set_agent(1, "agent", "one", "", "clock")
        before = history.entries
    async with conversations.open_conversation("a") as conversation:
        assert [e.role for e in conversation.entries] == ["user", "tool", "agent"]
        assert conversation.entries[1].outcome == "effect_unknown"
        assert conversation.entries[1].call == before[1].call
        history = History(conversation.entries)
        history.on_change = conversation.write
        assert history.last_answer == 1
        history.add_tool_call(ToolCall(name="look", id="7"), answer=2)
        history.add_tool_result(ToolResult(name="look", id="7", content="found"))
    async with conversations.open_conversation("a") as conversation:
        old, new = [entry for entry in conversation.entries if entry.role == "tool"]
        assert (old.outcome, old.call.id) == ("effect_unknown", "7")
        assert (new.outcome, new.call.id) == ("completed", "7_2")


async def test_a_file_of_the_first_format_is_taken(tmp_path):
    """It had no additions; it is read as it is, and grows by them from then on."""
    path = tmp_path / "calls.db"
    async with SqliteConversations(path).open_conversation("a") as conversation:
        conversation.write(0, UserEntry(0.0, "one"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript("DROP TABLE additions; PRAGMA user_version = 1;")
    async with SqliteConversations(path).open_conversation("a") as conversation:
        assert words(conversation.entries) == ["one"]
        conversation.write(1, AgentEntry(0.0, 1, "agent", "two ", ""))
        conversation.write(1, AgentEntry(0.0, 1, "agent", "two three", ""))
        assert (records(path), additions(path)) == (2, 1)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)


async def test_repairs_are_written(tmp_path):
    """A job that was lost keeps its place when the conversation goes on."""
    conversations = SqliteConversations(tmp_path / "calls.db")
    async with conversations.open_conversation("a") as conversation:
        history = History()
        history.on_change = conversation.write
        history.add_tool_call(ToolCall(name="look", id="7"))
        away = ToolResult(name="look", id="7", content="later", outcome="backgrounded")
        history.add_tool_result(away)
    async with conversations.open_conversation("a") as conversation:
        assert isinstance(conversation.entries[1], JobEntry)
        conversation.write(2, UserEntry(0.0, "and?"))
    async with conversations.open_conversation("a") as conversation:
        assert [e.role for e in conversation.entries] == ["tool", "job", "user"]


async def test_half_a_record_is_passed_over(tmp_path):
    """It stays in the file, is logged, and what comes next overwrites nothing."""
    conversations = SqliteConversations(tmp_path / "calls.db")
    async with conversations.open_conversation("a") as conversation:
        for number in range(3):
            conversation.write(number, UserEntry(0.0, str(number)))
    with closing(sqlite3.connect(tmp_path / "calls.db", isolation_level=None)) as connection:
        connection.execute("UPDATE entries SET record = '{\"v\":1,' WHERE number = 1")
    for expected in (["0", "2"], ["0", "two", "3"]):
        with structlog.testing.capture_logs() as logs:
            async with conversations.open_conversation("a") as conversation:
                assert words(conversation.entries) == expected
                conversation.write(1, UserEntry(0.0, "two"))
                conversation.write(2, UserEntry(0.0, "3"))
        assert "conversation_record_unreadable" in [entry["event"] for entry in logs]
    assert records(tmp_path / "calls.db") == 4


async def test_a_conversation_is_open_once(tmp_path):
    """A second call is refused with an error that says so, whatever store object it uses."""
    conversations, same = (
        SqliteConversations(tmp_path / "calls.db"),
        SqliteConversations(tmp_path / "calls.db"),
    )
    async with conversations.open_conversation("a"):
        for store in (conversations, same):
            with pytest.raises(
                ConversationBusyError, match="'a' is open in another call"
            ) as caught:
                async with store.open_conversation("a"):
                    raise AssertionError
            assert caught.value.conversation == "a"
            with pytest.raises(ConversationBusyError):
                await store.delete("a")
        async with same.open_conversation("b"):
            pass
    async with same.open_conversation("a"):
        pass


@pytest.mark.parametrize("wrong", ["", "x" * 257, "\ud800", 5, None])
async def test_ids_are_texts(tmp_path, wrong):
    """What cannot name a conversation is refused."""
    conversations = SqliteConversations(tmp_path / "calls.db")
    with pytest.raises(ValueError, match="a conversation id is a text of 1 to 256 characters, not"):
        async with conversations.open_conversation(wrong):
            raise AssertionError
    with pytest.raises(ValueError, match="a conversation id is"):
        await conversations.delete(wrong)


async def test_conversations_are_listed_and_deleted(tmp_path, monkeypatch):
    """The list tells what there is, the last changed first; what was deleted is gone."""
    now_s = [100.0]
    monkeypatch.setattr("time.time", lambda: now_s[0])
    conversations = SqliteConversations(tmp_path / "calls.db")
    assert await conversations.list() == []
    await conversations.delete("a")
    assert list(tmp_path.iterdir()) == []
    for name in ("a", "b"):
        async with conversations.open_conversation(name) as conversation:
            conversation.write(0, UserEntry(0.0, "one"))
            now_s[0] += 1
    async with conversations.open_conversation("empty"):
        pass
    listed = [(i.id, i.entries, i.created_s, i.changed_s) for i in await conversations.list()]
    assert listed == [("b", 1, 101.0, 102.0), ("a", 1, 100.0, 101.0)]
    await conversations.delete("a")
    assert [info.id for info in await conversations.list()] == ["b"]
    async with conversations.open_conversation("a") as conversation:
        assert conversation.entries == ()
    assert records(tmp_path / "calls.db") == 0
    assert repr(conversations) == f"SqliteConversations({str(tmp_path / 'calls.db')!r})"


async def test_a_full_disk_is_told_once_and_tried_again(tmp_path, autojump_clock):
    """The call goes on; all that was said is saved in order once there is room."""
    conversations = SqliteConversations(tmp_path / "calls.db")
    troubles: list[str] = []
    with structlog.testing.capture_logs() as logs:
        async with conversations.open_conversation("a") as conversation:
            conversation.on_trouble = troubles.append
            conversation.write(0, UserEntry(0.0, "before"))
            size = (tmp_path / "calls.db-wal").stat().st_size
            with full_disk(size):
                for number in range(1, 400):
                    conversation.write(number, UserEntry(0.0, "x" * 100))
                conversation.write(1, UserEntry(0.0, "changed"))
                await trio.sleep(20)
                assert records(tmp_path / "calls.db") == 1
            (trouble,) = troubles
            assert trouble.startswith("the conversation 'a' cannot be saved (")
            await trio.sleep(5)
            assert records(tmp_path / "calls.db") == 400
            conversation.write(400, UserEntry(0.0, "after"))
            assert records(tmp_path / "calls.db") == 401
            with full_disk(size):
                conversation.write(401, UserEntry(0.0, "again"))
                await trio.sleep(1)
                assert len(troubles) == 2
    assert [e["event"] for e in logs] == [
        "conversation_trouble",
        "conversation_saved_again",
        "conversation_trouble",
    ]
    async with conversations.open_conversation("a") as conversation:
        assert words(conversation.entries)[:2] == ["before", "changed"]
        assert words(conversation.entries)[399:] == ["x" * 100, "after", "again"]


async def test_what_is_lost_is_logged(tmp_path, autojump_clock):
    """A disk that stays full to the end of the call loses what was said since, and says so."""
    conversations = SqliteConversations(tmp_path / "calls.db")
    with structlog.testing.capture_logs() as logs, ExitStack() as disk:
        async with conversations.open_conversation("a") as conversation:
            conversation.write(0, UserEntry(0.0, "before"))
            disk.enter_context(full_disk((tmp_path / "calls.db-wal").stat().st_size))
            for number in range(1, 10_003):
                conversation.write(number, UserEntry(0.0, str(number)))
            conversation.write(3, UserEntry(0.0, "changed"))
            await trio.sleep(1)
    told = [(e["entries"], e["indexes"]) for e in logs if "lost" in e["event"]]
    assert told == [(10_002, "1-10002")]
    async with conversations.open_conversation("a") as conversation:
        assert words(conversation.entries) == ["before"]


@pytest.mark.proof
async def test_a_disk_with_room_again_gets_all_that_was_kept(tmp_path, autojump_clock):
    """After 50,003 entries 3 are lost: one line names them; other calls go on while it writes."""
    conversations = SqliteConversations(tmp_path / "calls.db")
    steps = 0
    with structlog.testing.capture_logs() as logs:
        async with conversations.open_conversation("a") as conversation:
            conversation.write(0, UserEntry(0.0, "before"))
            with full_disk((tmp_path / "calls.db-wal").stat().st_size):
                for number in range(1, 50_004):
                    conversation.write(number, UserEntry(0.0, str(number)))
                await trio.sleep(1)
            while not any(e["event"] == "conversation_saved_again" for e in logs):
                autojump_clock.jump(0.01)
                await trio.lowlevel.checkpoint()
                steps += 1
            conversation.write(50_004, UserEntry(0.0, "after"))
    assert steps >= 250, "it writes 200 at a time"
    told = [(e.get("index"), e.get("indexes")) for e in logs if "lost" in e["event"]]
    assert told == [(50_001, None), (None, "50001-50003")]
    async with conversations.open_conversation("a") as conversation:
        expected = ["before", *map(str, range(1, 50_001)), "after"]
        assert words(conversation.entries) == expected


async def test_a_conversation_that_another_process_writes_to_waits(tmp_path, autojump_clock):
    """For a second it is nobody's trouble; then it is told, and saved when the other lets go."""
    conversations = SqliteConversations(tmp_path / "calls.db")
    troubles: list[str] = []
    async with conversations.open_conversation("a") as conversation:
        conversation.on_trouble = troubles.append
        conversation.write(0, UserEntry(0.0, "one"))
        with closing(sqlite3.connect(tmp_path / "calls.db", isolation_level=None)) as other:
            for held_s, told in ((0.5, 0), (3.0, 1)):
                other.execute("BEGIN IMMEDIATE")
                before = records(tmp_path / "calls.db")
                conversation.write(before, UserEntry(0.0, "more"))
                await trio.sleep(held_s)
                assert len(troubles) == told
                assert records(tmp_path / "calls.db") == before
                other.execute("ROLLBACK")
                conversation.write(before + 1, UserEntry(0.0, "next"))
                assert records(tmp_path / "calls.db") == before  # it does not overtake
                await trio.sleep(5)
                assert records(tmp_path / "calls.db") == before + 2
    assert "locked" in troubles[0]


async def test_a_file_that_cannot_be_opened_is_told_and_tried_again(tmp_path):
    """The call begins without its past; what it says is added behind that once it can be."""
    folder, away = tmp_path / "disk", tmp_path / "away"
    folder.mkdir()
    conversations = SqliteConversations(folder / "calls.db")
    async with conversations.open_conversation("a") as conversation:
        conversation.write(0, UserEntry(0.0, "past"))
    folder.rename(away)
    troubles: list[str] = []
    with structlog.testing.capture_logs() as logs:
        async with conversations.open_conversation("a") as conversation:
            assert conversation.entries == ()
            conversation.write(0, UserEntry(0.0, "now"))
            assert conversation.on_trouble is None
            conversation.on_trouble = troubles.append
            assert "cannot be loaded and saved" in troubles[0]
            await trio.sleep(0.1)
            away.rename(folder)
            with trio.fail_after(30):
                while records(folder / "calls.db") < 2:  # noqa: ASYNC110 - it is in a file
                    await trio.sleep(0.01)
            conversation.write(1, UserEntry(0.0, "then"))
            assert records(folder / "calls.db") == 3
        async with conversations.open_conversation("a") as conversation:
            assert words(conversation.entries) == ["past", "now", "then"]
    assert len(troubles) == 1
    assert [e["event"] for e in logs] == ["conversation_trouble", "conversation_saved_again"]


async def test_a_file_that_is_no_database_is_left_alone(tmp_path, autojump_clock):
    """It is told as trouble; nothing is written over it."""
    path = tmp_path / "calls.db"
    path.write_bytes(b"a letter to a friend, and no database; " * 50)
    before = path.read_bytes()
    conversations = SqliteConversations(path)
    troubles: list[str] = []
    with structlog.testing.capture_logs() as logs:
        async with conversations.open_conversation("a") as conversation:
            conversation.on_trouble = troubles.append
            conversation.write(0, UserEntry(0.0, "one"))
            await trio.sleep(10)
        assert "conversation_entries_lost" in [e["event"] for e in logs]
    assert "not a database" in troubles[0]
    assert path.read_bytes() == before
    with pytest.raises(ConversationError, match="cannot be read"):
        await conversations.list()
    with pytest.raises(ConversationError, match="'a' cannot be deleted"):
        await conversations.delete("a")


async def test_a_newer_file_is_refused(tmp_path):
    """Neither a newer format of the file nor newer records are touched."""
    path = tmp_path / "calls.db"
    conversations = SqliteConversations(path)
    async with conversations.open_conversation("a") as conversation:
        conversation.write(0, UserEntry(0.0, "one"))
    for statement in (
        "UPDATE entries SET record = replace(record, '\"v\":2', '\"v\":3')",
        "PRAGMA user_version = 3",
    ):
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(statement)
        with pytest.raises(ConversationError, match="newer"):
            async with conversations.open_conversation("a"):
                raise AssertionError
    assert list((tmp_path / "calls.db-locks").iterdir()) == []


async def test_what_cannot_be_written_keeps_nothing_else_from_it(tmp_path):
    """An entry that no JSON can hold is logged and left out."""
    loop: list = []
    loop.append(loop)
    history = History()
    conversations = SqliteConversations(tmp_path / "calls.db")
    with structlog.testing.capture_logs() as logs:
        async with conversations.open_conversation("a") as conversation:
            history.on_change = conversation.write
            history.add_tool_call(ToolCall.model_construct(name="x", id="a", arguments={"b": loop}))
            history.add_user("hi")
            assert records(tmp_path / "calls.db") == 1
    assert [e["event"] for e in logs] == ["conversation_entry_unwritable"]


async def test_the_log_is_moved_into_the_database(tmp_path):
    """After 2,000 writes a conversation does it beside the call; closing leaves no log.

    The log begins anew with the first write for which all of it was moved: in one of 20 rounds.
    """
    conversations = SqliteConversations(tmp_path / "calls.db")
    wal = tmp_path / "calls.db-wal"
    async with conversations.open_conversation("a") as conversation:
        before, written = (tmp_path / "calls.db").stat().st_size, 0
        sizes = [0]
        while len(sizes) < 3 or (len(sizes) <= 20 and sizes[-1] - sizes[-2] >= sizes[1] / 2):
            for number in range(written, written + 2000):
                conversation.write(number, UserEntry(0.0, "x" * 200))
            written += 2000
            with trio.fail_after(60):
                while (tmp_path / "calls.db").stat().st_size < before + 200 * written:  # noqa: ASYNC110
                    await trio.sleep(0.01)  # the file is written beside the call
            sizes.append(wal.stat().st_size)
        assert sizes[-1] - sizes[-2] < sizes[1] / 2, "it begins anew"
    assert not wal.exists()


async def test_a_closed_conversation_takes_nothing(tmp_path):
    """Another call may have it by then: what comes too late is logged and lost."""
    conversations = SqliteConversations(tmp_path / "calls.db")
    async with conversations.open_conversation("a") as conversation:
        conversation.write(0, UserEntry(0.0, "one"))
    async with conversations.open_conversation("a") as again:
        with structlog.testing.capture_logs() as logs:
            conversation.write(1, UserEntry(0.0, "late"))
        again.write(1, UserEntry(0.0, "two"))
    assert [e["event"] for e in logs] == ["conversation_entry_lost"]
    async with conversations.open_conversation("a") as conversation:
        assert words(conversation.entries) == ["one", "two"]


async def test_cancelling_a_call_loses_nothing(tmp_path):
    """A conversation that is cancelled closes as any other."""
    conversations = SqliteConversations(tmp_path / "calls.db")
    with trio.CancelScope() as scope:
        async with conversations.open_conversation("a") as conversation:
            conversation.write(0, UserEntry(0.0, "one"))
            scope.cancel()
            await trio.sleep_forever()
    assert list((tmp_path / "calls.db-locks").iterdir()) == []
    assert not (tmp_path / "calls.db-wal").exists()
    async with conversations.open_conversation("a") as conversation:
        assert words(conversation.entries) == ["one"]
