"""Ears of vendors, and the base class for an ear of your own.

Pass one to ``StreamingSpeech(ear, voice)``.  To add a vendor, write a codec for ``VendorEar``.
"""

import bargein.nodes.ears as _nodes_ears
import bargein.nodes.vendors.azure.transcription as _azure
import bargein.nodes.vendors.openai as _openai
import bargein.nodes.vendors.soniox as _soniox

from .nodes.ears import *
from .nodes.vendors.azure.transcription import *
from .nodes.vendors.openai import *
from .nodes.vendors.soniox import *

__all__: list[str] = []
__all__ += _nodes_ears.__all__
__all__ += _openai.__all__
__all__ += _soniox.__all__
__all__ += _azure.__all__
