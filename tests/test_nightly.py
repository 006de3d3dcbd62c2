"""What `make nightly` does with its jobs; the jobs themselves take hours."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from . import nightly
from .nightly import JOBS, Job, main


def test_every_run_is_made_and_a_failed_one_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that fails stops nothing, keeps what it printed, and fails the whole."""
    code = "import sys; print('run', sys.argv[1]); sys.exit(sys.argv[1] == '2')"
    job = Job("odd", "odd runs", 3, lambda number, _: [sys.executable, "-c", code, str(number)])
    monkeypatch.setattr(nightly, "JOBS", (job,))
    assert main(["--out", str(tmp_path)]) == 1
    told = capsys.readouterr().out.splitlines()
    assert [line.partition(" (")[0].partition(",")[0] for line in told[:3]] == [
        "odd 1/3: ok",
        "odd 2/3: FAILED",
        "odd 3/3: ok",
    ]
    assert told[-1].strip() == "2 of 3 odd runs"
    assert (tmp_path / "odd" / "2" / "output.txt").read_text() == "run 2\n"
    assert main(["--out", str(tmp_path), "--times", "1"]) == 0


def test_each_caller_of_the_rehearsal_has_its_job() -> None:
    """Every caller rings twenty times."""
    assert {job.name for job in JOBS} >= {"rehearse-espeak", "rehearse-piper", "fuzz", "soak"}
    assert all(job.times == 20 for job in JOBS if job.name.startswith("rehearse"))
