"""A caller in Python: connects to a server over a socket and talks with its agent."""

import bargein.bridge.client as _bridge_client

from ._removed import removed_names
from .bridge.client import *

__all__: list[str] = []
__all__ += _bridge_client.__all__

TYPE_CHECKING = False
if not TYPE_CHECKING:  # to a type checker, a module with __getattr__ has every name
    __getattr__ = removed_names(__name__)
