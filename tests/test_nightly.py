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
    assert {job.name for job in JOBS} >= {
        "rehearse-espeak",
        "rehearse-piper",
        "rehearse-twilio",
    }
    assert all(job.times == 20 for job in JOBS if job.name.startswith("rehearse"))


def test_strangers_and_long_loads_have_their_jobs() -> None:
    """Frames, attacks and the soak are run with the sizes that they are meant for."""
    commands = {job.name: list(job.command(7, Path())) for job in JOBS}
    assert commands["fuzzing"][1:] == ["-m", "tests.fuzzing", "--seed", "7", "--frames", "100000"]
    assert commands["soak"][-4:] == ["--calls", "60", "--minutes", "10"]
    assert commands["attacks"][-1].endswith("test_attacks.py")


def test_what_a_job_prints_is_shown_if_it_has_figures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The figures of a soak are worth reading also when they are good."""
    code = "print('grew by 1 kB')"
    job = Job("odd", "odd runs", 1, lambda *_: [sys.executable, "-c", code], tells=True)
    monkeypatch.setattr(nightly, "JOBS", (job,))
    assert main(["--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("grew by 1 kB\nodd 1/1: ok")
