"""The reference by which a worker process finds a function."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_WRAPPED = ("__wrapped__", "function")
"""The attributes in which decorated functions and tools keep the function itself."""


def reference_of(function: Callable[..., Any] | str) -> tuple[str, str]:
    """Return the module and the qualified name of a function.

    Args:
        function: A plain function of a module, or its path, "module:qualname".

    Raises:
        ValueError: A process cannot import the function by that name.
    """
    if isinstance(function, str):
        module, colon, qualname = function.partition(":")
        if not (module and colon and qualname):
            raise ValueError(f"{function!r} is not the path of a function: write 'module:qualname'")
        return module, qualname
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise ValueError(f"{function!r} is async: a worker process runs plain functions")
    module = getattr(function, "__module__", None) or ""
    qualname = getattr(function, "__qualname__", None) or ""
    found: Any = sys.modules.get(module)
    for name in qualname.split("."):
        found = getattr(found, name, None)
    if found is function:
        return module, qualname
    for name in _WRAPPED:
        if found is not None and getattr(found, name, None) is function:
            return module, f"{qualname}.{name}"
    raise ValueError(
        f"a worker process cannot import {function!r} as {module}:{qualname}; "
        "define it with def at the top of a module"
    )


def main_script() -> tuple[str, str] | None:
    """Return the file and package of the main script; ``None`` if there is none."""
    main = sys.modules.get("__main__")
    path = getattr(main, "__file__", None)
    return (str(Path(path).absolute()), getattr(main, "__package__", None) or "") if path else None
