"""Language models."""

from .nodes import llm as _nodes_llm
from .nodes.llm import *

__all__: list[str] = []
__all__ += _nodes_llm.__all__
