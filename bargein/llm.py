"""Language models."""

import bargein.nodes.llm as _nodes_llm

from .nodes.llm import *

__all__: list[str] = []
__all__ += _nodes_llm.__all__
