"""What goes wrong with threads.

ConversationError
└── ConversationBusyError
"""

from __future__ import annotations

from bargein.routes import BargeinError


class ConversationError(BargeinError):
    """A thread cannot be opened or deleted; its message says which and what to do."""


class ConversationBusyError(ConversationError):
    """A thread is open in another call, of this process or of another one."""

    def __init__(self, thread: str) -> None:
        super().__init__(
            f"the thread {thread!r} is open in another call; end that call first, or take another "
            "thread id"
        )
        self.thread = thread
