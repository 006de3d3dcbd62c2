"""The settings of a pool of workers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._termination import Ladder

_LADDER = Ladder(int_s=0, term_s=0, kill_s=1.0)
"""SIGKILL at once: most workers have nothing to save."""


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
    """A worker without a piece for so many seconds is late: another starts if a job waits."""
    ping_s: float = math.inf
    """A worker without a piece for so many seconds is pinged, and is lost if it does not answer
    within the same time again. This detects a worker that is stopped, or whose native code blocks
    the interpreter."""
    attempts: int = 1
    """The largest number of attempts for a job whose worker is lost. Use 2 only for engines that
    split the same job into the same pieces each time."""
    niceness: int = 0
    """The niceness of the workers, 0 to 19."""
    ladder: Ladder = _LADDER
    """The signals for a worker that is lost, or does not end with its input."""
    has_effects: bool = False
    """Whether jobs have effects, as a tool's function has; POSIX only. The process then starts with
    the first job. When a job is cancelled, the processes that it started get SIGINT and are
    stopped, and its caller waits for that. The caller gets what the job writes."""
