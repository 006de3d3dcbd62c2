"""Ears and voices."""

import bargein.nodes.speech as _nodes_speech

from .nodes.speech import *

__all__: list[str] = []
__all__ += _nodes_speech.__all__
