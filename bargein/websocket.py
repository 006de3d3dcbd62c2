"""WebSockets over trio, client and server."""

import bargein.bridge.websocket as _bridge_websocket

from .bridge.websocket import *

__all__: list[str] = []
__all__ += _bridge_websocket.__all__
