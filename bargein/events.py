"""The events of a call: import them from here."""

import bargein.bridge.events as _bridge_events

from ._removed import removed_names
from .bridge.events import *

__all__: list[str] = []
__all__ += _bridge_events.__all__

TYPE_CHECKING = False
if not TYPE_CHECKING:  # to a type checker, a module with __getattr__ has every name
    __getattr__ = removed_names(__name__)
