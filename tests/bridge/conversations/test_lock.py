"""A conversation is one call's at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import bargein
from bargein.bridge.conversations._lock import ConversationLock

TAKE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from bargein.bridge.conversations._lock import ConversationLock
lock = ConversationLock(Path(sys.argv[2]), "a")
print("taken", flush=True)
sys.stdin.read()
"""


def test_it_is_taken_once(tmp_path):
    """A second one is refused until the first is released; other conversations are free."""
    path = tmp_path / "calls.db"
    lock = ConversationLock(path, "a")
    with pytest.raises(BlockingIOError):
        ConversationLock(path, "a")
    other = ConversationLock(path, "b")
    lock.release()
    ConversationLock(path, "a").release()
    other.release()
    assert list((tmp_path / "calls.db-locks").iterdir()) == []


def test_a_lock_dies_with_its_process(tmp_path):
    """Another process holds it while it lives, and a kill lets it go."""
    path = tmp_path / "calls.db"
    root = str(Path(bargein.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", TAKE, root, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout.readline() == b"taken\n"
        with pytest.raises(BlockingIOError):
            ConversationLock(path, "a")
        child.kill()
        child.wait(60)
    ConversationLock(path, "a").release()


def test_a_file_that_was_removed_meanwhile_is_no_lock(tmp_path, monkeypatch):
    """Whoever locks the file of one who has just released it tries again with a new one."""
    path = tmp_path / "calls.db"
    (tmp_path / "calls.db-locks").mkdir()
    seen = []

    def is_current(self, descriptor: int) -> bool:
        seen.append(descriptor)
        if len(seen) == 1:
            self._path.unlink()  # the one before releases it in this very moment
        return current(self, descriptor)

    current = ConversationLock._is_current
    monkeypatch.setattr(ConversationLock, "_is_current", is_current)
    lock = ConversationLock(path, "a")
    assert len(seen) == 2
    monkeypatch.undo()
    with pytest.raises(BlockingIOError):
        ConversationLock(path, "a")
    lock.release()
