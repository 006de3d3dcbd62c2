"""How the weights of a small network stand in a module."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Packed:
    """A network in signed bytes."""

    values: str
    """In base 85: inner weights by feature, inner offsets, outer weights."""
    inner_step: float
    offset_step: float
    outer_step: float
    offset: float
