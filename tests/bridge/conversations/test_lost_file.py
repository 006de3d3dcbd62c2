"""A database file that is gone, replaced or a link, while calls use it or when it is opened."""

import shutil
import sys

import pytest
import structlog
import trio

from bargein import UserEntry
from bargein.conversations import ConversationError, SqliteConversations

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="open files stay there")


def deleted(path):
    path.unlink()


def replaced(path):
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


def made_a_link(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def deleted_with_its_folder(path):
    shutil.rmtree(path.parent)


@pytest.mark.parametrize(
    ("lose", "told"),
    [
        (deleted, "is gone while it was open"),
        (replaced, "was replaced by another file while it was open"),
        (made_a_link, "is a link"),
        (deleted_with_its_folder, "is gone while it was open"),
    ],
)
async def test_a_file_that_goes_while_it_is_open_is_told(tmp_path, autojump_clock, lose, told):
    """The log and the call name the file and what to do, and nothing counts as saved."""
    path = tmp_path / "data" / "calls.db"
    path.parent.mkdir()
    conversations = SqliteConversations(path)
    troubles: list[str] = []
    with structlog.testing.capture_logs() as logs:
        async with conversations.open_conversation("a") as conversation:
            conversation.on_trouble = troubles.append
            conversation.write(0, UserEntry(0.0, "before"))
            lose(path)
            conversation.write(1, UserEntry(0.0, "into nowhere"))
            await trio.sleep(10)
    assert len(troubles) == 1
    assert told in troubles[0]
    assert repr(str(path)) in troubles[0]
    assert "put the file back" in troubles[0] or "remove the link" in troubles[0]
    [trouble] = [entry for entry in logs if entry["event"] == "conversation_trouble"]
    assert trouble["file"] == str(path)
    assert told in trouble["error"]
    [lost] = [entry for entry in logs if entry["event"] == "conversation_entries_lost"]
    assert lost["entries"] == 1
    if lose is deleted:
        assert not path.exists()  # no second file that would hide the loss


async def test_a_file_that_comes_back_is_written_to_again(tmp_path, autojump_clock):
    """What was said meanwhile is saved; a call that began meanwhile is told, too."""
    path, away = tmp_path / "calls.db", tmp_path / "away.db"
    conversations = SqliteConversations(path)
    troubles: list[str] = []
    async with conversations.open_conversation("a") as conversation:
        conversation.write(0, UserEntry(0.0, "before"))
        path.rename(away)
        conversation.write(1, UserEntry(0.0, "meanwhile"))
        async with conversations.open_conversation("b") as other:
            other.on_trouble = troubles.append
            other.write(0, UserEntry(0.0, "also"))
            assert not path.exists()
            away.rename(path)
            await trio.sleep(10)
    assert "is gone" in troubles[0]
    for name, said in (("a", ["before", "meanwhile"]), ("b", ["also"])):
        async with conversations.open_conversation(name) as conversation:
            assert [entry.content for entry in conversation.entries] == said


@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
@pytest.mark.parametrize("there", [True, False])
async def test_a_link_is_not_opened(tmp_path, autojump_clock, end, there):
    """Neither the database nor its log may be a link: nothing is written where it leads."""
    path, victim = tmp_path / "calls.db", tmp_path / "victim"
    if there:
        victim.write_bytes(b"")
        victim.chmod(0o644)
    path.with_name(path.name + end).symlink_to(victim)
    conversations = SqliteConversations(path)
    troubles: list[str] = []
    async with conversations.open_conversation("a") as conversation:
        conversation.on_trouble = troubles.append
        conversation.write(0, UserEntry(0.0, "hello"))
        await trio.sleep(10)
    assert "is a link" in troubles[0]
    if there:
        assert victim.read_bytes() == b""
        assert victim.stat().st_mode & 0o777 == 0o644
    else:
        assert not victim.exists()
    with pytest.raises(ConversationError, match="is a link"):
        await conversations.list()
