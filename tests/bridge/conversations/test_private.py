"""What people said is for the user who runs the agent."""

import os
import stat
import sys

import pytest

from bargein.conversations import SqliteConversations

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")


def modes(folder):
    return {
        path.name: stat.S_IMODE(path.stat().st_mode)
        for path in folder.iterdir()
        if path.name != "beside"
    }


@pytest.mark.parametrize("existed", [False, True])
async def test_files_of_conversations_are_for_their_user_alone(tmp_path, existed):
    """Database, log and index have mode 0600, the folder of locks 0700, whatever the umask."""
    if existed:
        (tmp_path / "calls.db").touch(mode=0o644)
    before = os.umask(0)
    try:
        async with SqliteConversations(tmp_path / "calls.db").open_conversation("ada"):
            found = modes(tmp_path)
    finally:
        os.umask(before)
    assert found.pop("calls.db-locks") == 0o700
    assert found
    assert set(found.values()) == {0o600}
