"""The history of a call: what was said, as it was heard, and its rendering for models."""

from ._entries import AgentEntry as AgentEntry
from ._entries import Entry as Entry
from ._entries import InterruptionRecord as InterruptionRecord
from ._entries import JobEntry as JobEntry
from ._entries import NoteEntry as NoteEntry
from ._entries import ToolEntry as ToolEntry
from ._entries import ToolMark as ToolMark
from ._entries import ToolRecord as ToolRecord
from ._entries import UserEntry as UserEntry
from ._history import History as History
from ._provider_call import extra_of as extra_of
from ._render import ChatMessage as ChatMessage
from ._render import as_anthropic as as_anthropic
from ._render import as_chat as as_chat
from ._render import last_messages as last_messages

__all__ = [
    "AgentEntry",
    "ChatMessage",
    "Entry",
    "History",
    "InterruptionRecord",
    "JobEntry",
    "NoteEntry",
    "ToolEntry",
    "ToolRecord",
    "UserEntry",
    "as_anthropic",
    "as_chat",
    "extra_of",
    "last_messages",
]
