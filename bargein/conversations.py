"""Conversations that outlive their calls."""

import bargein.bridge.conversations as _bridge_conversations

from .bridge.conversations import *

__all__: list[str] = []
__all__ += _bridge_conversations.__all__
