"""How the workers of one engine are run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._termination import Ladder

_LADDER = Ladder(int_s=0, term_s=0, kill_s=1.0)
"""Most workers keep nothing that a gentler end would save."""


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """How the workers of one engine are run."""

    name: str
    """What the engine is called in logs and errors."""
    engine: Path
    """Python file whose ``load(settings)`` returns the engine; see `_worker_child.py`."""
    settings: Mapping[str, Any]
    """Handed to ``load``, as JSON."""
    size: int = 1
    """Number of processes: that many jobs are done at once, more wait their turn."""
    start_s: float = 60.0
    """A worker that is not ready by then is killed."""
    cancel_s: float = 3.0
    """A worker that is still busy with a cancelled job by then is killed and replaced."""
    late_s: float = math.inf
    """A worker that gives no piece for so long is late: another starts beside it if a job waits."""
    ping_s: float = math.inf
    """A worker that gives no piece for so long is asked whether it is there, and is lost if it does
    not say so within that time again.  It tells one that is stopped, or whose native code keeps the
    interpreter, from one that is at work."""
    attempts: int = 1
    """How often a job is begun whose worker is lost.  2 is for engines that cut the same job into
    the same pieces each time."""
    niceness: int = 0
    """How far the workers stand back where processors are few, 0 to 19."""
    ladder: Ladder = _LADDER
    """How a worker is ended that is lost, or does not end with its input."""
    has_effects: bool = False
    """Whether a job does more than give pieces, as a tool's function does; POSIX only.  A process
    starts with the first job then.  What the job starts gets SIGINT when it is cancelled, and is
    stopped with it, and its caller waits for that.  What it writes is told to its caller."""
