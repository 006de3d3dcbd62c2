"""A caller in Python: connects to a server over a socket and talks with its agent."""

import bargein.bridge.client as _bridge_client

from .bridge.client import *

TYPE_CHECKING = False
if not TYPE_CHECKING:  # to a type checker, a module with __getattr__ has every name

    def __getattr__(name: str) -> object:
        if name == "Caller":
            raise ImportError(
                "bargein.client.Caller is NetworkCaller now (the Caller of bargein.testing has no "
                "network): from bargein.client import NetworkCaller"
            )
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__: list[str] = []
__all__ += _bridge_client.__all__
