"""Caps: how much one answer may use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from ..validation.numbers import check_numbers

Cap = Literal["steps", "wall_s", "tool_calls", "tokens", "cost", "repeats"]
"""What a cap limits."""

CAPS: tuple[Cap, ...] = get_args(Cap)


@dataclass(frozen=True, slots=True)
class Caps:
    """How much one answer may use, including its children and background work.

    ``None`` sets no limit.

    Raises:
        TypeError: A cap is not a number.
        ValueError: A cap is too small to be reached, or infinite.
    """

    steps: int | None = None
    """Calls of the model and of tools together, from 1."""
    wall_s: float | None = None
    """Seconds at work, above 0.  The clock stands still while the answer is paused, or one of its
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
        check_numbers(self, Caps, tool_calls=0, repeats=0)


NO_CAPS = Caps()
"""The caps of a part of an answer that has none of its own."""
