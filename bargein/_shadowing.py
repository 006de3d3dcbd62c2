"""Names the user's file that hides a library, such as a ``trio.py`` beside the agent.

Python looks in the folder of a script first, and with ``python -m`` in the current one, so such a
file is imported wherever the library is meant.  The error that follows names neither.  Anything may
be hidden that this module would import, so it imports what Python itself starts with.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CORE = frozenset({"trio", "pydantic", "structlog", "websockets"})
"""What importing bargein needs beside Python's own modules."""


def is_suspected() -> bool:
    """Return whether a file in front of the libraries has the name of one that bargein needs."""
    return any(name in CORE or name in sys.stdlib_module_names for name, _ in _files_in_front())


def hint() -> str:
    """Return which files were imported in place of libraries, and what to do; empty for none."""
    return "; ".join(
        f"{file!r} hides the {'module' if _is_of_python(name) else 'library'} {name!r}"
        f"{' of Python' if _is_of_python(name) else ''}: rename it"
        for name, file in dict(_files_in_front()).items()
        if _is_imported_from(name, file) and _is_elsewhere(name, file)
    )


def _files_in_front() -> Iterator[tuple[str, str]]:
    """Yield the modules in the folders that Python searches before its own."""
    own = os.path.dirname(getattr(os, "__file__", ""))
    for entry in sys.path:
        if entry == own:
            break
        try:
            folder = os.path.abspath(entry)  # an empty one is the current folder
            names = os.listdir(folder)
        except OSError:  # an archive, or not there
            continue
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(".py"):
                yield name[:-3], path
            elif "." not in name and os.path.isfile(inner := os.path.join(path, "__init__.py")):
                yield name, inner


def _is_of_python(name: str) -> bool:
    return name in sys.stdlib_module_names


def _is_imported_from(name: str, file: str) -> bool:
    origin = getattr(sys.modules.get(name), "__file__", None)
    return origin is not None and os.path.abspath(origin) == file


def _is_elsewhere(name: str, file: str) -> bool:
    if name == __package__:
        return False
    folder = os.path.dirname(file.removesuffix(os.sep + "__init__.py"))
    others = [entry for entry in sys.path if os.path.abspath(entry) != folder]
    spec = PathFinder.find_spec(name, others)
    return spec is not None and spec.origin is not None  # one without is a bare folder
