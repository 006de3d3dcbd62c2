"""Says whose code a task runs, for a line of the log."""

from __future__ import annotations

from contextvars import Context
from typing import Any

from structlog.contextvars import STRUCTLOG_KEY_PREFIX

from bargein.routes import run_in


def log_keys_of(context: Context) -> dict[str, Any]:
    """Return the node and route of a task, and the keys bound to its log lines, with its call."""
    known = {
        variable.name.removeprefix(STRUCTLOG_KEY_PREFIX): value
        for variable, value in context.items()
        if variable.name.startswith(STRUCTLOG_KEY_PREFIX) and value is not Ellipsis
    }
    known.pop("event", None)  # structlog uses this key for the name of the line
    run = run_in(context)
    if run is not None:
        known |= {"node": run.source, "route": run.written}
    return known
