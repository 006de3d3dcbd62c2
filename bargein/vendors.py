"""Sessions with vendors of ears, voices and models."""

from .nodes import vendors as _nodes_vendors
from .nodes.vendors import *

__all__: list[str] = []
__all__ += _nodes_vendors.__all__
