"""Language models."""

import bargein.nodes.llm as _nodes_llm
import bargein.nodes.vendors.azure.chat as _azure
import bargein.nodes.vendors.gemini.chat as _gemini

from .nodes.llm import *
from .nodes.vendors.azure.chat import *
from .nodes.vendors.gemini.chat import *

__all__: list[str] = []
__all__ += _nodes_llm.__all__
__all__ += _azure.__all__
__all__ += _gemini.__all__
