"""WebSockets over trio, client and server."""

from .bridge import websocket as _bridge_websocket
from .bridge.websocket import *

__all__: list[str] = []
__all__ += _bridge_websocket.__all__
