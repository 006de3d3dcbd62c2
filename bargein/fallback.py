"""Providers that stand in for one another."""

from .nodes import fallback as _nodes_fallback
from .nodes.fallback import *

__all__: list[str] = []
__all__ += _nodes_fallback.__all__
