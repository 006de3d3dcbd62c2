"""Runs programs quickly: a process that has loaded what they need forks for each of them.

``python -m bargein ...`` and ``python -m pytest ...`` take a second to load what they import, which
tests of their behaviour pay again and again.  Here one process pays it once.  A program runs as it
would by itself, with a folder, an environment, streams and an end of its own; only what has been
imported is there already.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 120
"""A program that takes longer is killed; generous, because the machine may be busy."""

_servers: dict[str, subprocess.Popen[str]] = {}
_lock = threading.Lock()


def run(
    module: str,
    arguments: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    lines: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m module`` with arguments to its end.

    Args:
        module: ``bargein`` or ``pytest``.
        arguments: Those of its command line.
        cwd: The folder it runs in, which it imports from.
        env: Variables beside those of this process.
        lines: What it reads from standard input.
    """
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("in", "out", "err")]
        streams[0].write_text(lines, encoding="utf-8")
        request = {
            "arguments": list(arguments),
            "cwd": str(cwd),
            "env": {**os.environ, **(env or {})},
            "streams": [str(stream) for stream in streams],
        }
        with _lock:
            code = _ask(_server(module), request)
        _, out, err = (stream.read_text("utf-8", "replace") for stream in streams)
    return subprocess.CompletedProcess([module, *arguments], code, out, err)


def _server(module: str) -> subprocess.Popen[str]:
    if module not in _servers:
        _servers[module] = subprocess.Popen(
            [sys.executable, "-m", "tests.forking", module],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    return _servers[module]


def _ask(server: subprocess.Popen[str], request: dict[str, Any]) -> int:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    return int(server.stdout.readline())


# --- the process that forks ---------------------------------------------------------------------


def _serve(module: str) -> None:
    """Fork for each request of standard input, and tell the exit code; ends with the input."""
    main = _loaded(module)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(main, **request)
        status = os.waitpid(child, 0)[1]
        print(os.waitstatus_to_exitcode(status), flush=True)


def _loaded(module: str) -> Any:
    if module == "pytest":
        import _pytest.assertion.rewrite  # noqa: F401  # what the import of pytest leaves for later
        import pydantic  # noqa: F401
        import pytest
        import structlog  # noqa: F401
        import websockets  # noqa: F401

        return pytest.main
    import bargein.llm
    import bargein.server
    import bargein.tools  # noqa: F401
    from bargein.cli import main

    return lambda: main(sys.argv[1:])


def _become(
    main: Any, arguments: list[str], cwd: str, env: dict[str, str], streams: list[str]
) -> None:
    """Be the program that is asked for, and end with its code."""
    import signal

    signal.alarm(LIMIT_S)
    code = 70
    try:
        os.setsid()
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        flags = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT)
        for number, (path, flag) in enumerate(zip(streams, flags, strict=True)):
            os.dup2(os.open(path, flag), number)
        sys.stdin = open(0, closefd=False, encoding="utf-8")  # noqa: SIM115
        sys.stdout = open(1, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
        sys.argv = ["program", *arguments]
        sys.path[:0] = [cwd, *env.get("PYTHONPATH", "").split(os.pathsep)]
        code = _code_of(main)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _code_of(main: Any) -> int:
    try:
        code = main()
    except SystemExit as end:
        code = end.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
            return 1
    except BaseException:  # noqa: BLE001 - as the interpreter does
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        return 1
    return int(code or 0)


if __name__ == "__main__":
    _serve(sys.argv[1])
