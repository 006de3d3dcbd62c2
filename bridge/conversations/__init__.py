"""Threads: conversations that outlive their call and their process."""

from ._errors import ThreadBusyError as ThreadBusyError
from ._errors import ThreadError as ThreadError
from ._protocol import Thread as Thread
from ._protocol import ThreadInfo as ThreadInfo
from ._protocol import Threads as Threads
from ._sqlite import SqliteThreads as SqliteThreads

__all__ = ["SqliteThreads", "Thread", "ThreadBusyError", "ThreadError", "ThreadInfo", "Threads"]
