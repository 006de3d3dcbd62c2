"""Caps: how much one turn may use."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

Cap = Literal["steps", "wall_s", "tool_calls", "tokens", "cost", "repeats"]
"""What a cap limits."""

CAPS: tuple[Cap, ...] = get_args(Cap)

_WHOLE: dict[Cap, int] = {"steps": 1, "tool_calls": 0, "tokens": 1, "repeats": 0}
"""The caps that are whole numbers, with the minimum of each."""


@dataclass(frozen=True, slots=True)
class Caps:
    """How much one turn may use, including its children and background work.

    ``None`` sets no limit.

    Raises:
        ValueError: A cap is not a number that can be reached.
    """

    steps: int | None = None
    """Calls of the model and of tools together, from 1."""
    wall_s: float | None = None
    """Seconds at work, above 0.  The clock stands still while the turn is paused, or one of its
    tools waits for a person's answer or permission."""
    tool_calls: int | None = None
    """Calls of tools, from 0."""
    tokens: int | None = None
    """Tokens, read and written, from 1: each piece of an answer counts as one until the server
    reports the number."""
    cost: float | None = None
    """Money, above 0, in the currency in which costs are reported."""
    repeats: int | None = None
    """How often a tool may be called again with exactly the same arguments, from 0."""

    def __post_init__(self) -> None:
        for which, least in _WHOLE.items():
            value = getattr(self, which)
            whole = isinstance(value, int) and not isinstance(value, bool)
            if value is not None and not (whole and value >= least):
                raise ValueError(f"Caps({which}=) is a whole number from {least}, not {value!r}")
        for which in ("wall_s", "cost"):
            value = getattr(self, which)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if value is not None and not (number and 0 < value < math.inf):
                raise ValueError(f"Caps({which}=) is a number above 0, not {value!r}")


NO_CAPS = Caps()
"""The caps of a part of a turn that has none of its own."""
