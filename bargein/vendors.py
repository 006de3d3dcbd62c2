"""What ears, voices and models of vendors share: sessions, keys, errors and retries.

Use it to write a provider of your own; ``open_session()`` keeps a WebSocket to a vendor open.
"""

import bargein.nodes.vendors as _nodes_vendors

from .nodes.vendors import *

__all__: list[str] = []
__all__ += _nodes_vendors.__all__
