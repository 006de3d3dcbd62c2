"""Turn taking measured on recordings of people, and its table."""

from .nodes import evaluation as _nodes_evaluation
from .nodes.evaluation import *

__all__: list[str] = []
__all__ += _nodes_evaluation.__all__
