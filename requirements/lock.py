"""Writes the lock of each extra: one version of each package, with the hashes of all of its files.

``make lock`` runs it.  uv finds versions that fit one another in all extras, on every Python and
system at once.  No address of an index gets into a lock: it installs from the one a machine uses.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
FOLDER = ROOT / "build" / "lock"
CORE, BUILD = "core", "build-system"
"""The locks of no extra: what bargein itself needs, and what builds it."""

APART = {
    "oldest-websockets": ["websockets==13.1"],
    "foreign-routes": ["Routes"],
    "asgi-hosts": ["fastapi", "starlette", "uvicorn", "hypercorn"],
}
"""What tests install beside bargein: for `make oldest`, a stranger's package for `make wheel`, and
the hosts of `make asgi`, whose versions fit what bargein itself needs."""


def requirements() -> dict[str, list[str]]:
    """Return what each lock is for: the requirements by the name of the extra, core, or building.

    Where an extra brings others of ours, theirs stand in their place.
    """
    said: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project = said["project"]
    core, own = project["dependencies"], project["optional-dependencies"]

    def flat(lines: list[str]) -> Iterator[str]:
        for line in lines:
            if ours := re.fullmatch(r"bargein\[([\w,-]+)\]", line):
                for name in ours[1].split(","):
                    yield from flat(own[name])
            else:
                yield line

    # Hatchling asks for ``editables`` when it is run, so no file names it.
    build = [*said["build-system"]["requires"], "editables>=0.5"]
    return {CORE: core, BUILD: build, **{name: [*core, *flat(own[name])] for name in own}}


def main() -> None:
    """Lock a copy of the project that also has a group of what builds it."""
    project = FOLDER / "project"
    shutil.rmtree(project, ignore_errors=True)
    project.mkdir(parents=True)
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    group = f"\n[dependency-groups]\n{BUILD} = {json.dumps(requirements()[BUILD])}\n"
    (project / "pyproject.toml").write_text(text + group, "utf-8")
    for name in ("README.md", "LICENSE"):
        shutil.copy(ROOT / name, project)
    uv(project, "lock")
    for old in HERE.glob("*.txt"):
        old.unlink()
    for name in requirements():
        which = {CORE: ["--no-default-groups"], BUILD: ["--only-group", BUILD]}
        shape = ["--no-emit-project", "--no-header", "--no-annotate", "--no-emit-index-url"]
        pins = uv(
            project, "export", "--quiet", "--frozen", *shape, *which.get(name, ["--extra", name])
        )
        write(name, about(name), pins)
    (FOLDER / "core.in").write_text("\n".join(requirements()[CORE]), "utf-8")
    for name, lines in APART.items():
        (FOLDER / "apart.in").write_text("\n".join(lines), "utf-8")
        shape = ["--quiet", "--universal", "--generate-hashes", "--no-header", "--no-annotate"]
        shape += ["--constraint", "core.in"] if name == "asgi-hosts" else []
        write(name, ", ".join(lines), uv(FOLDER, "pip", "compile", *shape, "apart.in"))


def write(name: str, holds: str, pins: str) -> None:
    """Write a lock."""
    head = f"# `make lock` wrote this: {holds}, one version each, with hashes.\n"
    (HERE / f"{name}.txt").write_text(head + pins, "utf-8")


def about(name: str) -> str:
    """Return what a lock holds, in words."""
    if name == CORE:
        return "what bargein needs without an extra"
    return "what builds bargein" if name == BUILD else f"what bargein[{name}] needs"


def uv(folder: Path, *arguments: str) -> str:
    """Run uv from its own environment, without the settings of a user, and return its output."""
    program = FOLDER / "uv" / "bin" / "uv"
    command = [str(program), *arguments, "--no-config", "--python", sys.executable]
    ended = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    return ended.stdout


if __name__ == "__main__":
    main()
