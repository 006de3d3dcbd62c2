"""Reads signatures and annotations of foreign code, including names only type checkers know."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["own_annotations", "signature_of"]


def signature_of(fn: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function, whatever its annotations name.

    From Python 3.14 on, annotations are evaluated when somebody asks for them (PEP 649), and a name
    that is imported only for type checkers would raise; it becomes a forward reference instead.

    Raises:
        TypeError: It cannot be called.
        ValueError: It is a builtin that has no signature.
    """
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(fn, annotation_format=Format.FORWARDREF)
    return inspect.signature(fn)


def own_annotations(cls: type) -> Mapping[str, Any]:
    """Return the annotations that a class itself has, by name; see `signature_of`."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations

        return get_annotations(cls, format=Format.FORWARDREF)
    return inspect.get_annotations(cls)
