"""Tools to test an agent: calls in virtual time, simulated callers, scripted models, checks."""

import bargein.bridge.testing as _bridge_testing
import bargein.nodes.testing as _nodes_testing

from .bridge.testing import *
from .nodes.testing import *

__all__: list[str] = []
__all__ += _bridge_testing.__all__
__all__ += _nodes_testing.__all__
