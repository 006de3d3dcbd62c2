"""Voices of vendors, and the base classes for a voice of your own.

Pass one to ``StreamingSpeech(ear, voice)``.  To add a vendor, write a codec for ``VendorVoice``.
"""

import bargein.nodes.vendors.azure.voice as _azure
import bargein.nodes.vendors.rime as _rime
import bargein.nodes.voices as _nodes_voices

from .nodes.vendors.azure.voice import *
from .nodes.vendors.rime import *
from .nodes.voices import *

__all__: list[str] = []
__all__ += _nodes_voices.__all__
__all__ += _azure.__all__
__all__ += _rime.__all__
