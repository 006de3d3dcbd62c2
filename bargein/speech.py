"""Ears and voices."""

import bargein.nodes.speech as _nodes_speech

from ._removed import removed_names
from .nodes.speech import *

__all__: list[str] = []
__all__ += _nodes_speech.__all__

TYPE_CHECKING = False
if not TYPE_CHECKING:  # to a type checker, a module with __getattr__ has every name
    __getattr__ = removed_names(__name__)
