"""Conversations that outlive their call and their process."""

from ..history._entries import Entry as Entry
from ..history._repair import repair as repair
from ._entry_records import from_record as from_record
from ._entry_records import to_record as to_record
from ._errors import ConversationBusyError as ConversationBusyError
from ._errors import ConversationError as ConversationError
from ._protocol import Conversation as Conversation
from ._protocol import ConversationInfo as ConversationInfo
from ._protocol import Conversations as Conversations
from ._sqlite_store import SqliteConversations as SqliteConversations

__all__ = [
    "SqliteConversations",
    "Conversation",
    "ConversationBusyError",
    "ConversationError",
    "ConversationInfo",
    "Conversations",
    "Entry",
    "from_record",
    "repair",
    "to_record",
]
