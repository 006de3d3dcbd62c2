"""Voices of vendors."""

from .nodes import voices as _nodes_voices
from .nodes.voices import *

__all__: list[str] = []
__all__ += _nodes_voices.__all__
