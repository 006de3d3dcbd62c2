"""Pause, redirect, cancel and background; capabilities, permissions and caps."""

import bargein.bridge.control as _bridge_control

from .bridge.control import *

__all__: list[str] = []
__all__ += _bridge_control.__all__
