"""Watches what leaves a program: whom it looks up, whom it calls, and which files it writes where.

strace sees it in all processes and threads of the program, native code included.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from bargein.weights import cache_folder

ROOT = Path(__file__).parents[1]
WATCHED = "connect,sendto,sendmsg,sendmmsg,openat,mkdir,mkdirat,rename,renameat,renameat2"
RESOLVER = ("/etc/resolv.conf", "/run/systemd/resolve/")
"""What the C library opens first to look a name up, whether or not anybody answers."""

CALL = re.compile(r"\d+ +(?P<name>\w+)\((?P<arguments>.*)")
QUOTED = re.compile(r'"([^"]*)"')
ADDRESS = re.compile(r'sin6?_port=htons\((\d+)\).*?"([0-9a-f.:]+)"')
WRITES = re.compile("O_CREAT|O_WRONLY|O_RDWR")
NETWORK = ("connect", "send")
NO_FILES = ("/dev/", "/proc/")


@dataclass(frozen=True, slots=True)
class Leaving:
    """What a program did outside of its folder.

    Attributes:
        looked_up: Lines of the trace that show that a name was looked up.
        called: Addresses of other machines.
        written: Files and folders outside of its folder that it created or wrote.
        kept: Files in its folder, by their paths below it.
        code: Its exit code.
        output: What it printed.
    """

    looked_up: list[str]
    called: set[str]
    written: set[str]
    kept: set[str]
    code: int
    output: str


def watch(command: Sequence[str], folder: Path, *, limit_s: float, **environment: str) -> Leaving:
    """Run a program whose home, cache and temporary files are below a folder, and report.

    Without strace, tests fail in CI and are skipped elsewhere.
    """
    if (strace := shutil.which("strace")) is None:
        missing = "no strace on PATH; install it"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    trace = folder.parent / f"{folder.name}.trace"
    options = [
        "-f",
        "--seccomp-bpf",
        "-qq",
        "-s",
        "300",
        "-e",
        f"trace={WATCHED}",
        "-o",
        str(trace),
    ]
    ended = subprocess.run(
        [strace, *options, *command],
        cwd=folder,
        env=at_home(folder) | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=limit_s,
        check=False,
    )
    lines = trace.read_text("utf-8", "replace").splitlines()
    calls = [found for line in lines for found in ADDRESS.findall(line)]
    written = {os.path.normpath(folder / path) for line in lines for path in written_by(line)}
    return Leaving(
        looked_up=[line for line in lines if any(f'"{name}' in line for name in RESOLVER)]
        + [f"port 53 of {address}" for port, address in calls if port == "53"],
        called={address for _, address in calls if not is_loopback(address)},
        written={path for path in written if not f"{path}/".startswith((f"{folder}/", *NO_FILES))},
        kept={str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()},
        code=ended.returncode,
        output=ended.stdout,
    )


def written_by(line: str) -> Iterator[str]:
    """Yield the path that a call of the trace creates or opens to write, if it succeeds."""
    call = CALL.match(line)
    if call is None or " = -1 " in line:
        return
    name, arguments = call["name"], call["arguments"]
    paths = QUOTED.findall(arguments)
    if paths and (name != "openat" or WRITES.search(arguments)) and not name.startswith(NETWORK):
        yield paths[-1]


def is_loopback(address: str) -> bool:
    """Whether an address is this machine's own."""
    return address.startswith("127.") or address in {"::1", "0.0.0.0", "::"}


def at_home(folder: Path) -> dict[str, str]:
    """Return an environment in which a program finds its models, and nothing else of a user's.

    Programs often spare the machines of a CI, so it does not look like one.
    """
    (folder / "tmp").mkdir(exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {
        **kept,
        "HOME": str(folder),
        "TMPDIR": str(folder / "tmp"),
        "BARGEIN_MODELS": str(cache_folder()),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(ROOT),
    }
