"""The functions that a worker's process calls, by name, and how patiently they are stopped."""

from __future__ import annotations

from bargein.tools import SignalLadder

FAST = SignalLadder(int_s=0.4, term_s=0.3, kill_s=2.0)
PATIENT = SignalLadder(int_s=20, term_s=5, kill_s=2)


def f(name: str) -> str:
    """Return the path of a function of the fixture `functions`."""
    return f"child_functions:{name}"
