"""Services of vendors, played for tests: each can stall, drop, garble, reorder and refuse."""

from .nodes.testing import fakes as _nodes_testing_fakes
from .nodes.testing.fakes import *

__all__: list[str] = []
__all__ += _nodes_testing_fakes.__all__
