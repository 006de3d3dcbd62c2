"""What the checks of a provider are given, and within which bounds they check."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypedDict

from ..fakes import FaultKind


class CheckOptions(TypedDict, total=False):
    """The options of all checks of providers."""

    can: Collection[FaultKind]
    """What can go wrong with the vendor that `make` plays: `FakeVendor.faults`; by default nothing.
    Checks that need another fault are reported as skipped."""
    within_s: float
    """Within how many seconds a result or an error has to come; 90 by default."""
    points: int | None
    """How many steps of a use are cancelled at most, evenly; None, the default: each."""
    times: int
    """How many uses may leave nothing; 1,000 by default."""
    memory_bytes: int
    """How much a provider may hold of what nobody takes; 16 MiB by default."""
    virtual: bool
    """Whether time is virtual, the default; False for what has processes, threads or real
    sockets."""
    only: Collection[str] | None
    """The names of the checks; None, the default: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The options of a check, each with its default."""

    can: Collection[FaultKind] = ()
    within_s: float = 90.0
    points: int | None = None
    times: int = 1000
    memory_bytes: int = 16 << 20
    virtual: bool = True
    only: Collection[str] | None = None
