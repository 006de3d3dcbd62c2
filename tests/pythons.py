"""Runs the core tests on the oldest and the newest Python of this machine; ``make pythons``.

The core is what needs the four dependencies alone: routes, the call, the server and the nodes
without models.  ``make test`` runs everything on one Python, which is left out here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
OLDEST = (3, 11)
CORE = [
    "tests/routes",
    "tests/bridge/control",
    "tests/bridge/playout",
    "tests/bridge/conversations",
    "tests/bridge/protocol",
    "tests/bridge/server",
    "tests/bridge/websocket",
    "tests/nodes/tool_loop",
    "tests/nodes/user_turns",
    "tests/test_public_names.py",
]


def found() -> dict[tuple[int, int], str]:
    """Return the interpreters on the path, and those of pyenv, by version."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    paths = [str(path) for path in sorted(home.glob("versions/3.*/bin/python3"))]
    paths += [path for minor in range(11, 20) if (path := shutil.which(f"python3.{minor}"))]
    versions: dict[tuple[int, int], str] = {}
    for path in paths:
        told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        if match := re.fullmatch(r"Python (\d+)\.(\d+)\.\d+", told.stdout.strip()):
            versions[int(match[1]), int(match[2])] = path
    return {version: path for version, path in versions.items() if version >= OLDEST}


def run(path: str, folder: Path) -> None:
    """Install the core into an environment of its own, and run its tests."""
    subprocess.run([path, "-m", "venv", "--clear", folder], check=True)
    python = folder / "bin" / "python"
    subprocess.run([python, ROOT / "requirements" / "install.py", "core-test"], check=True)
    options = ["-m", "not proof", "-n", "2", "--dist", "loadfile"]
    subprocess.run([python, "-m", "pytest", "-q", *CORE, *options], cwd=ROOT, check=True)


def main() -> None:
    """Run the tests on both ends, where they are not the Python of ``make test``."""
    pythons = found()
    ends = {min(pythons, default=OLDEST), max(pythons, default=OLDEST)} - {sys.version_info[:2]}
    if not ends:
        print("this machine has no Python older or newer than that of `make test`")
    for version in sorted(end for end in ends if end in pythons):
        name = "python{}.{}".format(*version)
        print(f"== the core tests on {name}", flush=True)
        run(pythons[version], ROOT / "build" / name)


if __name__ == "__main__":
    main()
