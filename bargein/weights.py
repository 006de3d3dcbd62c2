"""Model weights: what there is, fetched and verified."""

from .nodes import models as _nodes_models
from .nodes.models import *

__all__: list[str] = []
__all__ += _nodes_models.__all__
