"""The options and bounds of the checks of providers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypedDict

from bargein.nodes.fakes import FaultKind


class CheckOptions(TypedDict, total=False):
    """The options of all checks of providers."""

    can: Collection[FaultKind]
    """The faults that the vendor behind `make` can play, such as `FakeVendor.faults`; by default
    none. Checks that need another fault are reported as skipped."""
    within_s: float
    """How long a result or an error may take, in seconds; 90 by default."""
    points: int | None
    """The most steps of a use at which to cancel it, evenly spread; ``None``, the default, for
    each."""
    times: int
    """How many uses the leak check makes; 1,000 by default."""
    memory_bytes: int
    """How much unread data a provider may hold; 16 MiB by default."""
    virtual: bool
    """Whether time is virtual, the default; False for providers with processes, threads or real
    sockets."""
    only: Collection[str] | None
    """The names of the checks to run; ``None``, the default, runs all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteCheckOptions:
    """The options of a check, each with its default."""

    can: Collection[FaultKind] = ()
    within_s: float = 90.0
    points: int | None = None
    times: int = 1000
    memory_bytes: int = 16 << 20
    virtual: bool = True
    only: Collection[str] | None = None
