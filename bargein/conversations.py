"""Conversations that outlive their calls."""

from .bridge import conversations as _bridge_conversations
from .bridge.conversations import *

__all__: list[str] = []
__all__ += _bridge_conversations.__all__
