"""Reads fields of providers' JSON that may have any type: what no answer needs fails none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def object_of(value: object) -> Mapping[str, Any]:
    """Return an object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def objects_of(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a list, or one that came without its list."""
    if isinstance(value, dict):
        return [value]
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_of(value: object) -> str:
    """Return a text; a number, such as an id, as its digits; empty for anything else."""
    if isinstance(value, str):
        return value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else ""


def count_of(value: object) -> int | None:
    """Return a count; ``None`` for what is none."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 16:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if math.isfinite(value) and value >= 0 else None
