"""Installs the packages that an extra has locked, and then bargein itself, in editable mode.

usage: python requirements/install.py EXTRA, with the Python of the environment

pip takes only wheels whose hashes are in the lock, and builds nothing but bargein.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
PYTHONS = [(3, minor) for minor in range(11, 15)]
MACHINES = {("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64")}
"""Where every locked package has a wheel."""

OLDEST = {"Linux": (2, 28), "Darwin": (14, 0)}
"""The glibc and the macOS that those wheels need at least."""


def is_locked() -> bool:
    """Whether the locks are for this Python and this machine.

    PyPy, the free-threaded build and musl need wheels of their own.
    """
    system = platform.system()
    usual = platform.python_implementation() == "CPython" and "t" not in getattr(
        sys, "abiflags", ""
    )
    library, version = platform.libc_ver() if system == "Linux" else ("", platform.mac_ver()[0])
    return (
        usual
        and sys.version_info[:2] in PYTHONS
        and (system, platform.machine()) in MACHINES
        and library in ("", "glibc")
        and tuple(int(part) for part in f"{version}.0".split(".")[:2]) >= OLDEST[system]
    )


def main(extra: str) -> None:
    """Install what the lock of an extra names, and the project without asking for anything more."""
    if not is_locked():
        print(
            f"== no lock for Python {platform.python_version()} on {platform.system()} "
            f"{platform.machine()}: pip picks the versions, and no hashes are checked",
            flush=True,
        )
        pip("--progress-bar", "on", "--editable", f"{ROOT}[{extra}]")
        return
    locks = [option for name in ("build-system", extra) for option in ("-r", f"{HERE / name}.txt")]
    pip("--progress-bar", "on", "--require-hashes", "--only-binary", ":all:", *locks)
    pip("--no-deps", "--no-build-isolation", "--editable", str(ROOT))


def pip(*arguments: str) -> None:
    """Run ``pip install`` quietly; its errors are told, and end this program with its code."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", *arguments]
    if code := subprocess.run(command, check=False).returncode:
        sys.exit(code)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:  # pip, which has heard it, too, undoes what it had begun
        sys.stderr.write("interrupted\n")
        sys.exit(130)
