"""How many tasks live: none may be left behind."""

from __future__ import annotations

import trio

from bargein.routes._alarm_clock import AlarmClock


def living_tasks() -> int:
    """Return how many tasks live, with the one that all routers of a trio run share."""
    AlarmClock.of_run()
    return trio.lowlevel.current_statistics().tasks_living
