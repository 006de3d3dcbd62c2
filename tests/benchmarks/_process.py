"""The environment of a load: a fresh interpreter, its memory, and its logs."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from bargein.cli import configure_logs

ROOT = Path(__file__).resolve().parents[2]


def run_python(*arguments: str) -> str:
    """Return what a fresh interpreter prints; it uses compiled modules.

    Args:
        *arguments: The arguments of the interpreter.

    Raises:
        RuntimeError: It failed; the message has its standard error.
    """
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment(), check=False
    )
    if done.returncode:
        raise RuntimeError(f"{arguments!r} failed with {done.returncode}:\n{done.stderr}")
    return done.stdout


def environment() -> dict[str, str]:
    """Return the environment of an interpreter that finds the same modules as this one."""
    paths = [entry for entry in sys.path if entry] + [str(ROOT)]
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return found


def resident_bytes() -> int:
    """Return the resident memory of this process, or its peak where only that is known."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        # Not ru_maxrss: a child inherits it from the process that forked it.
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@contextmanager
def logs_to_nowhere() -> Iterator[None]:
    """Write logs like a server, but discard them."""
    before = structlog.get_config()
    with Path(os.devnull).open("w") as out:
        configure_logs(out=out)
        try:
            yield
        finally:
            structlog.configure(**before)
