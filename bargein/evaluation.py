"""Measures turn taking on recordings of people, in virtual time: the command ``bargein eval``."""

import bargein.nodes.evaluation as _nodes_evaluation

from .nodes.evaluation import *

__all__: list[str] = []
__all__ += _nodes_evaluation.__all__
