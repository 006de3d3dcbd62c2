"""Finds the name of a bridge: the source of its events."""

from __future__ import annotations

import re
from collections.abc import Container

from .control._verb_argument_checks import check_string

OURS = ("caller", "call")
"""The sources of the caller's side and of the call itself."""


def free_name(node: object, name: str | None, taken: Container[str]) -> str:
    """Return the name of a new bridge.

    Args:
        node: The node; ``None`` for a bridge without one.
        name: The requested name; ``None`` derives it from the node's name or class.
        taken: The names of the existing bridges.

    Raises:
        TypeError: The name is not a string, or the node is a class or a name.
        ValueError: The name is empty or taken.
    """
    if isinstance(node, type):
        raise TypeError(f"bridge() needs a node, not its class; write bridge({node.__name__}(...))")
    if isinstance(node, str):
        raise TypeError(f"bridge() node= is a node, not a name; write bridge(name={node!r})")
    if name is not None:
        check_string("bridge", "name", name)
        if not name:
            raise ValueError("bridge() name= is the source of its events; it must not be empty")
        if name in taken or name in OURS:
            raise ValueError(f"the name {name!r} is taken in this call; give another name=")
        return name
    given = getattr(node, "name", None)
    base = given if isinstance(given, str) and given else _snake(type(node).__name__)
    base = "agent" if node is None else base
    free, count = base, 1
    while free in taken or free in OURS:
        count += 1
        free = f"{base}_{count}"
    return free


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
