"""Functions that a worker process imports."""

import os
import signal
import time

from bargein.tools import tool

kept: list[int] = []


@tool(where="worker")
def keep(number: int) -> list[int]:
    """Keep a number, and return all that were kept."""
    kept.append(number)
    print("kept", number)
    return kept


@tool(where="worker")
def nap(seconds: float) -> str:
    """Take a nap."""
    time.sleep(seconds)
    return "awake"


@tool(where="worker")
def fail() -> None:
    """Fail."""
    raise ZeroDivisionError("in the worker")


@tool(where="worker", timeout_s=0.5)
def trouble(how: str) -> str:
    """Make trouble in the process itself."""
    if how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


@tool(where="worker")
def hello() -> str:
    """Greet."""
    return "hello"
