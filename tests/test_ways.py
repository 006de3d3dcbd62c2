"""Each thing goes through no more calls of our functions than its row of the benchmarks allows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import bargein

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.proof
@pytest.mark.alone
def test_counted_calls_stay_within_their_bounds(tmp_path):
    """A token, a barge-in, a tool call and a frame take no longer way than is allowed.

    Calls are counted, not timed, so the figures are the same on any machine.  But callers speak in
    real time: among 16 busy processes on two cores, a barge-in went through 123 calls, not 119.
    """
    paths = [str(Path(bargein.__file__).parents[1]), str(ROOT)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "--quick", "ways"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=600,  # of one that hangs; others may use the cores
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
