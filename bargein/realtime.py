"""Speech-to-speech models, which hear the caller and speak by themselves."""

import bargein.nodes.realtime as _nodes_realtime

from .nodes.realtime import *

__all__: list[str] = []
__all__ += _nodes_realtime.__all__
