"""The events of the loads: slotted and frozen, like the framework's own audio."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Start:
    """Starts an answer."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Interrupts it."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of an answer."""

    number: int
