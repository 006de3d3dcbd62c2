"""WebSockets over trio, client and server."""

import bargein.bridge.websocket as _bridge_websocket

from ._removed import removed_names
from .bridge.websocket import *

__all__: list[str] = []
__all__ += _bridge_websocket.__all__

TYPE_CHECKING = False
if not TYPE_CHECKING:  # to a type checker, a module with __getattr__ has every name
    __getattr__ = removed_names(__name__)
