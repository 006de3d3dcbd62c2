"""Model weights: what there is, fetched and verified."""

import bargein.nodes.weights as _nodes_weights

from .nodes.weights import *

__all__: list[str] = []
__all__ += _nodes_weights.__all__
