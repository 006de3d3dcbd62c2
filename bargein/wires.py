"""Wires: the ways of reaching calls, and the check that a wire of your own must pass."""

import bargein.bridge.wires as _bridge_wires

from .bridge.wires import *

__all__: list[str] = []
__all__ += _bridge_wires.__all__
