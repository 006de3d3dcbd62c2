"""Stopping processes: those that obey, those that ignore signals, and what they leave behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from bargein.processes import SignalLadder, StopReport, stop_process

pytestmark = pytest.mark.proof

LADDER = SignalLadder(int_s=1.0, term_s=0.2, kill_s=5.0)
START = """
import os, signal, subprocess, sys, time
from pathlib import Path
def up(*pids):
    Path(sys.argv[0] + ".tmp").write_text(" ".join(map(str, (os.getpid(), *pids))))
    os.rename(sys.argv[0] + ".tmp", sys.argv[0] + ".up")
"""
POLITE = "try:\n    up(); time.sleep(60)\nexcept KeyboardInterrupt:\n    sys.exit(7)\n"
DEAF_TO_INT = "signal.signal(signal.SIGINT, signal.SIG_IGN)\nup(); time.sleep(60)\n"
DEAF_TO_BOTH = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + DEAF_TO_INT


def read_pids(path: Path) -> list[int]:
    return [int(pid) for pid in path.read_text().split()]


@pytest.fixture
def start(python, wait_until):
    """Start a script in a session of its own; return it and the pids it wrote."""
    started = []

    async def run(code: str) -> tuple[trio.Process, list[int]]:
        command = python(START + code)
        process = await trio.lowlevel.open_process(
            command, stdin=subprocess.DEVNULL, start_new_session=True
        )
        started.append(process)
        up = Path(command[-1] + ".up")
        await wait_until(up.exists)
        return process, read_pids(up)

    yield run
    for process in started:
        assert process.poll() is not None


@pytest.mark.parametrize(
    ("code", "ladder", "ended_by", "exit_code", "least_s"),
    [
        pytest.param(POLITE, SignalLadder(20, 20, 20), "SIGINT", 7, 0, id="polite"),
        pytest.param(DEAF_TO_INT, SignalLadder(0.3, 20, 20), "SIGTERM", -15, 0.3, id="deaf to INT"),
        pytest.param(
            DEAF_TO_BOTH, SignalLadder(0.3, 0.3, 20), "SIGKILL", -9, 0.6, id="deaf to both"
        ),
    ],
)
async def test_each_rung_is_climbed_only_when_it_is_needed(
    start, is_there, code, ladder, ended_by, exit_code, least_s
):
    """A process is ended by the first signal it heeds, reaped, and gone from the process table."""
    process, (pid,) = await start(code)
    report = await stop_process(process, ladder)
    assert report == StopReport(pid, ended_by, swept=0, left=0, took_s=report.took_s)
    assert process.returncode == exit_code
    assert not is_there(pid)
    assert least_s <= report.took_s < least_s + 5


@pytest.mark.skipif(sys.platform != "linux", reason="Linux shows such a process as a zombie")
async def test_a_process_whose_first_thread_has_ended_is_stopped(start, is_there, state_of):
    """A process whose main thread has ended does not count as a zombie while other threads run."""
    process, (pid,) = await start(
        "import ctypes, threading\n"
        "def rest():\n"
        "    while state() != 'Z':\n"
        "        time.sleep(0.01)\n"
        "    up(); time.sleep(60)\n"
        "def state():\n"
        "    return Path(f'/proc/{os.getpid()}/stat').read_text().rpartition(') ')[2][0]\n"
        "threading.Thread(target=rest).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )
    assert state_of(pid) == "Z"
    report = await stop_process(process, SignalLadder(int_s=0.2, term_s=0.2, kill_s=5.0))
    assert (report.ended_by, report.left) == ("SIGTERM", 0)
    assert not is_there(pid)


async def test_one_that_ended_by_itself_is_only_reported(start, is_there):
    """Nothing is sent to a process that has ended."""
    process, (pid,) = await start("up()\n")
    await process.wait()
    report = await stop_process(process, LADDER)
    assert (report.ended_by, report.swept, report.left) == ("itself", 0, 0)
    assert not is_there(pid)


CHILD = "signal.signal(2, signal.SIG_IGN); signal.signal(15, signal.SIG_IGN)"
DEAF_CHILD = f"""
def deaf(**how):
    ready, told = os.pipe()
    code = "import os, signal, time; {CHILD}; os.write(%d, b'.'); time.sleep(60)" % told
    child = subprocess.Popen([sys.executable, "-S", "-c", code], pass_fds=[told], **how)
    os.read(ready, 1)
    return child.pid
"""


@pytest.mark.parametrize("how", ["", "process_group=0"], ids=["same group", "group of its own"])
async def test_what_it_has_started_is_swept(start, is_there, orphans_are_ours, how):
    """A deaf grandchild is killed, in its process group or in one of its own, and counted."""
    code = DEAF_CHILD + f"pid = deaf({how})\ntry:\n    up(pid); time.sleep(60)\n"
    process, pids = await start(code + "except KeyboardInterrupt:\n    pass\n")
    report = await stop_process(process, LADDER)
    assert (report.ended_by, report.swept, report.left) == ("SIGINT", 1, 0)
    assert not any(map(is_there, pids))


@pytest.mark.skipif(sys.platform != "linux", reason="writes to /proc")
async def test_a_name_hides_nobody(start, is_there, orphans_are_ours):
    """A process's name may contain text that looks like the fields after it."""
    named = "import os, signal, time; open('/proc/self/comm', 'w').write('a) S 1 2 (b');"
    child = DEAF_CHILD.replace("import os, signal, time;", named)
    code = child + "pid = deaf()\ntry:\n    up(pid); time.sleep(60)\n"
    process, pids = await start(code + "except KeyboardInterrupt:\n    pass\n")
    report = await stop_process(process, LADDER)
    assert (report.ended_by, report.swept, report.left) == ("SIGINT", 1, 0)
    assert not any(map(is_there, pids))


async def test_a_polite_grandchild_has_the_time_of_the_rung(
    start, is_there, tmp_path, orphans_are_ours
):
    """A grandchild that cleans up on SIGINT may finish, though its parent has ended at once."""
    done = tmp_path / "done"
    child = f"""
import os, sys, time
try:
    os.write(int(sys.argv[1]), b'.'); time.sleep(60)
except KeyboardInterrupt:
    time.sleep(0.15); open({str(done)!r}, 'w').close()
"""
    code = f"""
ready, told = os.pipe()
command = [sys.executable, "-S", "-c", {child!r}, str(told)]
pid = subprocess.Popen(command, pass_fds=[told]).pid
os.read(ready, 1)
signal.signal(signal.SIGINT, signal.SIG_DFL)
up(pid); time.sleep(60)
"""
    process, (_, pid) = await start(code)
    report = await stop_process(process, SignalLadder(int_s=20, term_s=0.4, kill_s=2))
    assert (report.ended_by, report.swept) == ("SIGINT", 0)
    assert process.returncode == -signal.SIGINT
    assert done.exists()
    assert not is_there(pid)


async def test_what_a_process_leaves_behind_is_stopped_from_sigterm_on(
    start, is_there, orphans_are_ours
):
    """The processes left by one that ended by itself are stopped without the time for SIGINT."""
    code = "pid = subprocess.Popen(['sleep', '60'], process_group=0).pid\nup(pid)\n"
    process, pids = await start(code)
    await process.wait()
    report = await stop_process(process, SignalLadder(int_s=30, term_s=5, kill_s=2))
    assert (report.ended_by, report.swept, report.left) == ("itself", 0, 0)
    assert report.took_s < 5
    assert not any(map(is_there, pids))


async def test_an_orphan_of_another_process_is_dead_when_it_returns(start, is_there, state_of):
    """Without us as their new parent, the ones that were swept are at most zombies of process 1."""
    process, pids = await start(DEAF_CHILD + "pids = deaf(), deaf()\nup(*pids); time.sleep(60)\n")
    report = await stop_process(process, SignalLadder(0.1, 0.1, 2))
    assert (report.swept, report.left) == (2, 0)
    assert not is_there(process.pid)
    assert {state_of(pid) for pid in pids} <= {"Z", "-"}


async def test_force_skips_the_grace(start, is_there):
    """Once force is asked for, also in the middle of a rung, SIGKILL is next."""
    process, (pid,) = await start(DEAF_TO_BOTH)
    force_at_s = trio.current_time() + 0.2
    ladder = SignalLadder(int_s=30, term_s=30, kill_s=2)
    report = await stop_process(
        process, ladder, is_forced=lambda: trio.current_time() >= force_at_s
    )
    assert report.ended_by == "SIGKILL"
    assert 0.1 < report.took_s < 3
    assert not is_there(pid)


async def test_a_time_of_zero_leaves_out_the_signal(start):
    """A ladder without SIGINT begins with SIGTERM."""
    process, _ = await start(POLITE)
    report = await stop_process(process, SignalLadder(int_s=0, term_s=5, kill_s=2))
    assert (report.ended_by, process.returncode) == ("SIGTERM", -signal.SIGTERM)


async def test_it_works_while_cancelled(start, is_there):
    """Called from clean-up in a cancelled scope, it goes to its end all the same."""
    process, (pid,) = await start(DEAF_TO_BOTH)
    reports = []
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.sleep_forever()
        finally:
            reports.append(await stop_process(process, SignalLadder(0.1, 0.1, 2)))
    assert [report.ended_by for report in reports] == ["SIGKILL"]
    assert scope.cancelled_caught
    assert not is_there(pid)


async def test_a_process_of_our_own_session_is_refused():
    """One that leads no session is not touched: its family could not be told from ours."""
    process = await trio.lowlevel.open_process(["sleep", "60"])
    try:
        with pytest.raises(ValueError, match="start_new_session=True"):
            await stop_process(process, LADDER)
        assert process.poll() is None
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize("times", [{"int_s": -1}, {"term_s": float("nan")}, {"kill_s": 0}])
async def test_impossible_times_are_refused(times):
    """The error names the time."""
    (name,) = times
    with pytest.raises(ValueError, match=name):
        SignalLadder(**times)
