"""Model weights: what there is, fetched and verified."""

import bargein.nodes.weights as _nodes_weights

from ._removed import removed_names
from .nodes.weights import *

__all__: list[str] = []
__all__ += _nodes_weights.__all__

TYPE_CHECKING = False
if not TYPE_CHECKING:  # to a type checker, a module with __getattr__ has every name
    __getattr__ = removed_names(__name__)
