"""An extension of griffe, which reads the source for the reference: names that load on first use.

A package imports them under ``TYPE_CHECKING``, for checkers, and lists them in ``__all__``; at run
time its ``__getattr__`` finds them.  griffe takes them for names that only checkers have, and so no
``import *`` of a façade would pass them on.
"""

from __future__ import annotations

from typing import Any

import griffe


class LazyExports(griffe.Extension):
    """Counts what is imported under ``TYPE_CHECKING`` as there at run time."""

    def on_alias_instance(self, *, alias: griffe.Alias, **kwargs: Any) -> None:
        """Mark a name; only those of ``__all__`` are exported by it."""
        alias.runtime = True
