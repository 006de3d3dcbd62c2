"""Ears of vendors, and the base class for an ear of your own.

Pass one to ``StreamingSpeech(ear, voice)``.  To add a vendor, write a codec for ``VendorEar``.
"""

import bargein.nodes.ears as _nodes_ears

from .nodes.ears import *

__all__: list[str] = []
__all__ += _nodes_ears.__all__
