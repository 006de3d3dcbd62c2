"""What is written while an answer grows, and what a reader makes of half of it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import structlog
import trio

from bargein import History, InterruptionRecord, UserEntry
from bargein.conversations import Entry, SqliteConversations, repair
from bargein.events import ToolCall, ToolResult

from .sqlite_files import additions, full_disk, records

PAUSE = InterruptionRecord(
    answer=1, verb="pause", by="caller", cause="call.control", phase="speaking", at_s=4.5,
    elapsed_s=1.0, generated="", heard="", basis="text", step=2,
)  # fmt: skip


async def loaded(path: Path, copy: Path) -> tuple[Entry, ...]:
    """Return what is read if the process that writes a file is killed now."""
    async with SqliteConversations(copied(path, copy)).open_conversation("a") as conversation:
        return conversation.entries


def copied(path: Path, copy: Path) -> Path:
    """Copy a file and its log into a new folder, and return the copy's path."""
    copy.mkdir()
    for file in (path, path.with_name(path.name + "-wal")):
        if file.exists():
            shutil.copy(file, copy / file.name)
    return copy / path.name


@pytest.mark.parametrize("paused", [False, True])
async def test_a_token_costs_the_same_however_long_the_answer_is(tmp_path, paused):
    """What is written grows with what was added, and not with the answer."""
    wal, text, grown = tmp_path / "calls.db-wal", "", []
    async with SqliteConversations(tmp_path / "calls.db").open_conversation("a") as conversation:
        history = History()
        history.on_change = conversation.write
        for number in range(1, 1501):
            text += "word "
            history.set_agent(1, "agent", text, text, "text")
            if paused and number == 1:
                history.set_interruption(replace(PAUSE, generated=text, heard=text), "agent")
            if number in (100, 200, 1400, 1500):
                grown.append(wal.stat().st_size)
        early, late = grown[1] - grown[0], grown[3] - grown[2]
        assert 0 < late <= 1.5 * early
        assert records(tmp_path / "calls.db") == 1
        before = history.entries
    async with SqliteConversations(tmp_path / "calls.db").open_conversation("a") as conversation:
        assert [(e.generated, e.heard) for e in conversation.entries] == [(text, text)]
        assert (conversation.entries[0].interruption is None) == (not paused)
        if paused:
            assert (
                conversation.entries[0].interruption.generated == before[0].interruption.generated
            )


async def test_killed_between_any_two_changes(tmp_path):
    """What is read is the history as it was, whatever was added to the file in pieces."""
    path, chance = tmp_path / "calls.db", Random(7)
    async with SqliteConversations(path).open_conversation("a") as conversation:
        history = History()
        history.on_change = conversation.write
        said: dict[int, str] = {}
        for number in range(120):
            answer = chance.choice([1 + number // 40, 2 + number // 40])
            match chance.randrange(12):
                case 0:
                    history.add_user(f"words {number}")
                case 1:
                    history.add_tool_call(ToolCall(name="look", id=f"{number}"), answer=answer)
                    history.add_tool_result(ToolResult(name="look", id=f"{number}", content="x"))
                case 2:
                    text = said.get(answer, "")
                    cut = replace(PAUSE, answer=answer, generated=text, heard=text[:3])
                    history.set_interruption(cut, "agent")
                case _:
                    said[answer] = said.get(answer, "") + chance.choice(
                        ["one ", "\ud83d", "\n二\x00"]
                    )
                    heard = said[answer][: chance.randrange(len(said[answer]) + 1)]
                    history.set_agent(answer, "agent", said[answer], heard, "words")
            read = await loaded(path, tmp_path / f"copy{number}")
            assert _timeless(read) == _timeless(repair(history.entries))
        assert additions(path) > 0
    assert additions(path) == 0


def _timeless(entries: Iterable[Entry]) -> list[Entry]:
    """Leave out times: the clock of the copy's reader began elsewhere."""
    found = []
    for entry in entries:
        cut = getattr(entry, "interruption", None)
        changed = {"interruption": replace(cut, at_s=0.0)} if cut is not None else {}
        found.append(replace(entry, at_s=0.0, **changed))
    return found


async def test_an_answer_is_whole_once_the_next_entry_comes(tmp_path):
    """The pieces of an answer are put together in the write that adds the next entry."""
    path = tmp_path / "calls.db"
    async with SqliteConversations(path).open_conversation("a") as conversation:
        history = History()
        history.on_change = conversation.write
        for text in ("one ", "one two ", "one two three "):
            history.set_agent(1, "agent", text, "", "words")
        assert (records(path), additions(path)) == (1, 2)
        history.add_user("and?")
        assert (records(path), additions(path)) == (2, 0)
        history.set_agent(1, "agent", "one two three four", "one ", "words")
        assert (records(path), additions(path)) == (2, 1)
        history.set_agent(1, "agent", "something else", "", "words")
        assert (records(path), additions(path)) == (2, 0)
    async with SqliteConversations(path).open_conversation("a") as conversation:
        assert [e.role for e in conversation.entries] == ["agent", "user"]
        assert conversation.entries[0].generated == "something else"


@pytest.mark.parametrize("half", ['{"added":"three ","he', '{"added":5,"heard":1}', "[]", "{}"])
async def test_half_an_addition_is_passed_over(tmp_path, half):
    """What stands before it is read, it is logged, and what comes next is written."""
    path = tmp_path / "calls.db"
    async with SqliteConversations(path).open_conversation("a") as conversation:
        history = History()
        history.on_change = conversation.write
        for text in ("one ", "one two ", "one two three ", "one two three four "):
            history.set_agent(1, "agent", text, text, "words")
        path = copied(path, tmp_path / "copy")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE additions SET record = ? WHERE place = 2", [half])
    with structlog.testing.capture_logs() as logs:
        async with SqliteConversations(path).open_conversation("a") as conversation:
            assert [(e.generated, e.heard) for e in conversation.entries] == [
                ("one two ", "one two ")
            ]
            conversation.write(1, UserEntry(0.0, "and?"))
    assert [entry["event"] for entry in logs] == ["conversation_addition_unreadable"]
    assert additions(path) == 0
    async with SqliteConversations(path).open_conversation("a") as conversation:
        assert [e.role for e in conversation.entries] == ["agent", "user"]


async def test_an_answer_goes_on_while_the_disk_is_full(tmp_path, autojump_clock):
    """What could not be added is written whole once there is room."""
    path = tmp_path / "calls.db"
    with structlog.testing.capture_logs():
        async with SqliteConversations(path).open_conversation("a") as conversation:
            history, text = History(), ""
            history.on_change = conversation.write
            for number in range(100):
                text += f"word{number} "
                if number == 50:
                    with full_disk((tmp_path / "calls.db-wal").stat().st_size):
                        history.set_agent(1, "agent", text, text, "text")
                        await trio.sleep(2)
                        assert additions(path) == 49
                    await trio.sleep(10)
                    assert (records(path), additions(path)) == (1, 0)
                else:
                    history.set_agent(1, "agent", text, text, "text")
            assert additions(path) == 49
    async with SqliteConversations(path).open_conversation("a") as conversation:
        assert [(e.generated, e.heard) for e in conversation.entries] == [(text, text)]
