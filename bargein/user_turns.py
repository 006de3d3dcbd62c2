"""Turn taking: when the user's turn begins and ends, and what interrupts the agent."""

from .nodes import turns as _nodes_turns
from .nodes.turns import *

__all__: list[str] = []
__all__ += _nodes_turns.__all__
