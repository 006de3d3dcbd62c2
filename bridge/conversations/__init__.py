"""Threads: conversations that outlive their call and their process."""

from ._errors import ConversationBusyError as ConversationBusyError
from ._errors import ConversationError as ConversationError
from ._protocol import ConversationInfo as ConversationInfo
from ._protocol import Thread as Thread
from ._protocol import Threads as Threads
from ._sqlite import SqliteConversations as SqliteConversations

__all__ = [
    "SqliteConversations",
    "Thread",
    "ConversationBusyError",
    "ConversationError",
    "ConversationInfo",
    "Threads",
]
