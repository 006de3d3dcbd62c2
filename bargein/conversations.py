"""Conversations that outlive their calls."""

from .bridge import thread as _bridge_thread
from .bridge.thread import *

__all__: list[str] = []
__all__ += _bridge_thread.__all__
