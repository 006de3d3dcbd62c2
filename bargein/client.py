"""A caller in Python: connects to a server over a socket and talks with its agent."""

import bargein.bridge.client as _bridge_client

from .bridge.client import *

__all__: list[str] = []
__all__ += _bridge_client.__all__
