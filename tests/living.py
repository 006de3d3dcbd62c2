"""How many tasks live: none may be left behind."""

from __future__ import annotations

import trio


def living_tasks() -> int:
    """Return how many tasks live in this trio run."""
    return trio.lowlevel.current_statistics().tasks_living
