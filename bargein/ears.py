"""Ears of vendors."""

from .nodes import ears as _nodes_ears
from .nodes.ears import *

__all__: list[str] = []
__all__ += _nodes_ears.__all__
