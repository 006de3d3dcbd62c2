"""Extensions of griffe, which reads the source for the reference.

Names that load on first use: a package imports them under ``TYPE_CHECKING``, for checkers, and
lists them in ``__all__``; at run time its ``__getattr__`` finds them.  griffe takes them for names
that only checkers have, and so no ``import *`` of a façade would pass them on.

Docstrings that a class inherits: griffe shows only methods that have one of their own.
"""

from __future__ import annotations

from typing import Any

import griffe


class LazyExports(griffe.Extension):
    """Counts what is imported under ``TYPE_CHECKING`` as there at run time."""

    def on_alias_instance(self, *, alias: griffe.Alias, **kwargs: Any) -> None:
        """Mark a name; only those of ``__all__`` are exported by it."""
        alias.runtime = True


class InheritedDocstrings(griffe.Extension):
    """Gives a method without a docstring that of the one it overrides, as ``help()`` does."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Look through all classes of a package."""
        self._inherit(pkg)

    def _inherit(self, place: griffe.Module | griffe.Class) -> None:
        for member in place.members.values():
            if not member.is_alias and isinstance(member, griffe.Module | griffe.Class):
                self._inherit(member)
        for base in place.mro() if isinstance(place, griffe.Class) else ():
            for name, method in place.members.items():
                known = base.members.get(name)
                if method.docstring is None and known is not None and known.docstring is not None:
                    method.docstring = known.docstring
