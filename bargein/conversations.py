"""Conversations that outlive their calls."""

import bargein.bridge.conversations as _bridge_conversations

from ._removed import removed_names
from .bridge.conversations import *

__all__: list[str] = []
__all__ += _bridge_conversations.__all__

TYPE_CHECKING = False
if not TYPE_CHECKING:  # to a type checker, a module with __getattr__ has every name
    __getattr__ = removed_names(__name__)
