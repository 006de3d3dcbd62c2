"""Speech-to-speech models, which hear the caller and speak by themselves."""

import bargein.nodes.realtime as _shared

from ._removed import removed_names
from .nodes.realtime import *
from .nodes.vendors.openai.realtime import OpenAIRealtime as OpenAIRealtime

__all__ = [
    "OpenAIRealtime",
]
__all__ += _shared.__all__

TYPE_CHECKING = False
if not TYPE_CHECKING:  # to a type checker, a module with __getattr__ has every name
    __getattr__ = removed_names(__name__)
