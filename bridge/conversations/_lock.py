"""Who has a conversation: a lock on an open file, gone with its process."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(*error.args) from None

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class ConversationLock:
    """The lock on one conversation of a database, held from its making until ``release()``."""

    def __init__(self, database: Path, conversation: str) -> None:
        """Take the lock; never waits.

        Args:
            database: The file of the database; the locks lie in a folder beside it.
            conversation: The conversation.

        Raises:
            BlockingIOError: Somebody has it, in this process or in another one.
            OSError: The file of the lock cannot be made.
        """
        folder = database.with_name(database.name + "-locks")
        folder.mkdir(mode=0o700, exist_ok=True)
        self._path = folder / hashlib.sha256(conversation.encode()).hexdigest()[:32]
        self._descriptor = self._acquire()

    def _acquire(self) -> int:
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                _lock(descriptor)
                if self._is_current(descriptor):
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # whoever had it before has removed this very file meanwhile

    def _is_current(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self._path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Let the conversation go, and remove the file."""
        if sys.platform != "win32":  # an open file cannot be removed there
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
