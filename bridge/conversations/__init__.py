"""Conversations that outlive their call and their process."""

from ._errors import ConversationBusyError as ConversationBusyError
from ._errors import ConversationError as ConversationError
from ._protocol import Conversation as Conversation
from ._protocol import ConversationInfo as ConversationInfo
from ._protocol import Conversations as Conversations
from ._sqlite import SqliteConversations as SqliteConversations

__all__ = [
    "SqliteConversations",
    "Conversation",
    "ConversationBusyError",
    "ConversationError",
    "ConversationInfo",
    "Conversations",
]
