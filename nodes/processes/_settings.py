"""The settings of a pool of workers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bargein.bridge.validation.numbers import check_count, check_seconds

from ._termination import SignalLadder

_LADDER = SignalLadder(int_s=0, term_s=0, kill_s=1.0)
"""SIGKILL at once: most workers have nothing to save."""

LEAST_URGENT = 19
"""The highest niceness of POSIX."""


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """How to run the workers of one engine."""

    name: str
    """The engine's name in logs and errors."""
    engine: Path
    """Python file whose ``load(settings)`` returns the engine; see `_worker_child.py`."""
    settings: Mapping[str, Any]
    """Passed to ``load``, as JSON."""
    size: int = 1
    """Number of processes; so many jobs run at once, and further jobs wait."""
    start_s: float = 60.0
    """How long a worker may take to load, in seconds, before it is killed."""
    cancel_s: float = 3.0
    """How long a worker may take to end a cancelled job, in seconds; then it is killed."""
    late_s: float = math.inf
    """A worker without a piece for so many seconds is late: another starts if a job waits; infinity
    for never."""
    ping_s: float = math.inf
    """A worker without a piece for so many seconds is pinged, and is lost if it does not answer
    within the same time again. This detects a worker that is stopped, or whose native code blocks
    the interpreter."""
    attempts: int = 1
    """The largest number of attempts for a job whose worker is lost. Use 2 only for engines that
    split the same job into the same pieces each time."""
    inherit: tuple[str, ...] = ()
    """The names of our environment variables that the workers get besides those that every process
    gets, and those that Python and native libraries need; no other reaches them."""
    niceness: int = 0
    """The niceness of the workers, 0 to 19."""
    ladder: SignalLadder = _LADDER
    """The signals for a worker that is lost, or does not end with its input."""
    has_effects: bool = False
    """Whether jobs have effects, as a tool's function has; POSIX only. The process then starts with
    the first job. When a job is cancelled, the processes that it started get SIGINT and are
    stopped, and its caller waits for that. The caller gets what the job writes."""

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            TypeError: One is not a number of its kind.
            ValueError: One is out of its bounds.
        """
        check_count("PoolSettings(size=)", self.size)
        check_count("PoolSettings(attempts=)", self.attempts)
        check_count("PoolSettings(niceness=)", self.niceness, 0)
        if self.niceness > LEAST_URGENT:
            raise ValueError(f"PoolSettings(niceness=) is 0 to {LEAST_URGENT}: {self.niceness!r}")
        check_seconds("PoolSettings(start_s=)", self.start_s, above=0.0)
        check_seconds("PoolSettings(cancel_s=)", self.cancel_s)
        for name in ("late_s", "ping_s"):
            if getattr(self, name) != math.inf:
                check_seconds(f"PoolSettings({name}=)", getattr(self, name), above=0.0)
