"""What thinks, hears and speaks in a call."""

from ._context import ConversationContext as ConversationContext
from ._node import Node as Node
from ._reasoning import ReasoningNode as ReasoningNode

__all__ = ["ConversationContext", "Node", "ReasoningNode"]
