"""Tools: functions, commands, worker processes and MCP servers."""

import bargein.nodes.tools as _nodes_tools

from .nodes.tools import *

__all__: list[str] = []
__all__ += _nodes_tools.__all__
