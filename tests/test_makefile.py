"""`make` says what the machine lacks, in one line, before it makes or downloads anything."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def make(folder: Path, *words: str, **changed: str) -> subprocess.CompletedProcess[str]:
    """Run make in a folder that has nothing but what installing needs."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "requirements", folder / "requirements")
    return subprocess.run(
        ["make", "--no-print-directory", *words],
        cwd=folder,
        env={**os.environ, "MAKEFLAGS": "", **changed},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def startup(folder: Path, source: str) -> str:
    """Return a PYTHONPATH with which each Python first runs some lines."""
    (folder / "lines").mkdir()
    (folder / "lines/sitecustomize.py").write_text(source)
    return str(folder / "lines")


OLD = "import sys\nsys.version_info = (3, 9, 2, 'final', 0)\n"


def without(module: str) -> str:
    return f"import sys\nsys.modules[{module!r}] = None\n"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (OLD, "(Python 3.9) is too old: bargein needs Python 3.11 or newer; name another Python"),
        (without("ensurepip"), "lacks ensurepip; "),
        (without("venv"), "lacks venv; "),
    ],
)
def test_a_python_that_cannot_do_is_named(source: str, said: str, tmp_path: Path) -> None:
    """A Python that is too old or cannot make environments is named, and nothing is made."""
    ran = make(tmp_path, "demo", f"PYTHON={sys.executable}", PYTHONPATH=startup(tmp_path, source))
    assert ran.returncode != 0
    first = ran.stderr.splitlines()[0]
    assert first.startswith("error: "), ran.stderr
    assert said in first
    assert not (tmp_path / ".venv").exists()
    assert "installing" not in ran.stdout


def test_ensurepip_that_lacks_is_found_in_a_package(tmp_path: Path) -> None:
    """Who lacks ensurepip is told which package has it."""
    lines = startup(tmp_path, without("ensurepip"))
    ran = make(tmp_path, "test", f"PYTHON={sys.executable}", PYTHONPATH=lines)
    assert "apt install python3-venv" in ran.stderr


def test_a_python_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A Python that the machine does not have is named, with what to write instead."""
    ran = make(tmp_path, "demo", "PYTHON=python3.99")
    assert ran.returncode != 0
    assert ran.stderr.startswith("error: there is no python3.99; name another Python: make PYTHON=")


@pytest.mark.parametrize(
    ("source", "said"),
    [(OLD, "is too old: bargein needs Python 3.11"), (without("pip"), "lacks pip")],
)
def test_an_environment_that_cannot_do_is_named(source: str, said: str, tmp_path: Path) -> None:
    """An environment of an old Python, or half of one, is named with what to do about it."""
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").symlink_to(sys.executable)
    ran = make(tmp_path, "demo", PYTHONPATH=startup(tmp_path, source))
    assert ran.returncode != 0
    assert said in ran.stderr
    assert "run rm -r .venv, then make again" in ran.stderr
    assert "installing" not in ran.stdout
