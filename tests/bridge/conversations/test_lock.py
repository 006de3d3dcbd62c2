"""A conversation is one call's at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs

import bargein
from bargein.conversations import ConversationBusyError, SqliteConversations

TAKE = """
import sys
import trio
from bargein.conversations import SqliteConversations

async def main():
    async with SqliteConversations(sys.argv[1]).open_conversation("a"):
        print("taken", flush=True)
        await trio.sleep_forever()

trio.run(main)
"""


async def test_it_is_taken_once(tmp_path):
    """A second call is refused until the first is over; other conversations are free."""
    conversations = SqliteConversations(tmp_path / "calls.db")
    async with conversations.open_conversation("a"), conversations.open_conversation("b"):
        with pytest.raises(ConversationBusyError):
            async with conversations.open_conversation("a"):
                pytest.fail("it is open twice")
    async with conversations.open_conversation("a"):
        pass
    assert list((tmp_path / "calls.db-locks").iterdir()) == []


def test_a_lock_dies_with_its_process(tmp_path):
    """Another process holds it while it lives, and a kill lets it go."""
    root = str(Path(bargein.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", TAKE, str(tmp_path / "calls.db")], cwd=root, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout.readline() == b"taken\n"
        with pytest.raises(ConversationBusyError):
            trio.run(opens, tmp_path / "calls.db")
        child.kill()
        child.wait(60)
    trio.run(opens, tmp_path / "calls.db")


async def opens(path: Path) -> None:
    """Open the conversation, and leave it."""
    async with SqliteConversations(path).open_conversation("a"):
        pass


async def test_a_folder_that_is_missing_is_named(tmp_path):
    """The call continues, and its log says which folder to create, not which lock was missing."""
    folder = tmp_path / "missing"
    with capture_logs() as logs:
        async with SqliteConversations(folder / "calls.db").open_conversation("a"):
            pass
    (line,) = [line for line in logs if line["event"] == "conversation_trouble"]
    assert "there is no such folder; create it" in line["error"]
    assert line["error"].endswith(f"{str(folder)!r}")
