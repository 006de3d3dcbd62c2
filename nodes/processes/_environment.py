"""The environment of child processes: few variables of ours, so no key or token reaches them."""

from __future__ import annotations

import os
from collections.abc import Iterable

INHERITED = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"),
    *("LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"),
)
"""Our environment variables that every process gets: those that MCP servers get too, and those for
language and time zone."""

INHERITED_BY_WORKERS = (
    *("BARGEIN_MODELS", "XDG_CACHE_HOME"),
    *("PYTHONHOME", "PYTHONPATH", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"),
    *("PYTHONUTF8", "PYTHONIOENCODING", "PYTHONWARNINGS", "VIRTUAL_ENV"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LD_PRELOAD"),
    *("CUDA_VISIBLE_DEVICES", "CT2_FORCE_CPU_ISA", "ORT_DISABLE_TELEMETRY"),
    *("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    # Windows: without the first, no Python starts.
    *("SYSTEMROOT", "APPDATA", "COMSPEC", "LOCALAPPDATA", "PATHEXT", "TEMP", "TMP", "USERPROFILE"),
)
"""What a Python process and its native libraries need besides: where they are, and how many threads
they use."""


def inherited(names: Iterable[str]) -> dict[str, str]:
    """Return those of our environment variables that a process gets.

    Args:
        names: The names of variables besides ``INHERITED``.
    """
    wanted = (*INHERITED, *names)
    return {name: os.environ[name] for name in wanted if name in os.environ}
