"""Fakes of vendors' services for tests, which can stall, drop, garble, reorder and refuse.

Open one, and pass its ``dial`` to an ear or a voice, or its ``transport()`` to a model.
"""

import bargein.nodes.testing.fakes as _nodes_testing_fakes

from .nodes.testing.fakes import *

__all__: list[str] = []
__all__ += _nodes_testing_fakes.__all__
