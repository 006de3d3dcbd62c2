"""Language models."""

import bargein.nodes.llm as _nodes_llm
import bargein.nodes.vendors.azure.chat as _azure

from .nodes.llm import *
from .nodes.vendors.azure.chat import *

__all__: list[str] = []
__all__ += _nodes_llm.__all__
__all__ += _azure.__all__
