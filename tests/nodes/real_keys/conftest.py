"""Tests against the vendors' real services: each is collected only where its key is.

They cost money and time, and need the network: `make test` without keys leaves them out.
"""

from __future__ import annotations

from .keys import missing

collect_ignore = missing()
