"""Pause, redirect, cancel and background; capabilities, permissions and caps."""

import bargein.bridge.control as _bridge_control

from ._removed import removed_names
from .bridge.control import *

__all__: list[str] = []
__all__ += _bridge_control.__all__

TYPE_CHECKING = False
if not TYPE_CHECKING:  # to a type checker, a module with __getattr__ has every name
    __getattr__ = removed_names(__name__)
