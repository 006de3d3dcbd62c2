"""What is seen of the processes of a session, with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from bargein.nodes.processes._session import _parse, boot_clock_s, members, strike

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def leader():
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def pids(found):
    return {member.pid for member in found}


def test_the_leader_of_a_session_is_seen_with_its_start(leader):
    """members() lists the leader, with a start that is not before its birth."""
    (found,) = members(leader.pid)
    assert (found.pid, found.name) == (leader.pid, b"sleep")
    assert (found.parent, found.is_zombie) == (os.getpid(), False)
    assert boot_clock_s() - 30 < found.started_s <= boot_clock_s()


def test_striking_signals_who_lives_and_says_who_it_was(leader):
    """strike() ends the leader by the signal it is given, and returns its pid."""
    assert pids(strike(leader.pid, signal.SIGTERM, leader_is_reaped=False)) == {leader.pid}
    assert leader.wait(10) == -signal.SIGTERM


def test_looking_sends_nothing(leader):
    """strike() with number 0 only looks."""
    assert pids(strike(leader.pid, 0, leader_is_reaped=False)) == {leader.pid}
    assert leader.poll() is None


def test_a_zombie_does_not_count_as_alive(leader):
    """A leader that has ended and was not reaped is listed, but not struck."""
    leader.kill()
    os.waitid(os.P_PID, leader.pid, os.WEXITED | os.WNOWAIT)
    assert [member.is_zombie for member in members(leader.pid)] == [True]
    assert strike(leader.pid, signal.SIGKILL, leader_is_reaped=False) == []


def test_a_stranger_with_the_pid_of_a_reaped_leader_is_left_alone(leader):
    """Once the leader was reaped, a process of its pid is somebody else's: nobody is struck."""
    assert strike(leader.pid, signal.SIGKILL, leader_is_reaped=True) == []
    assert leader.poll() is None


def test_only_those_that_are_meant_are_struck():
    """A child can be signalled and its parent be spared; each is known by its start and name."""
    code = "import subprocess; print(subprocess.Popen(['sleep', '60']).pid, flush=True); input()"
    command = [sys.executable, "-S", "-c", code]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, start_new_session=True, stdin=pipe, stdout=pipe) as parent:
        child = int(parent.stdout.readline())
        seen = []

        def is_meant(member):
            seen.append((member.pid, member.name, member.started_s <= boot_clock_s()))
            return member.pid != parent.pid

        struck = strike(parent.pid, 9, leader_is_reaped=False, is_meant=is_meant)
        assert pids(struck) == {child}
        assert (child, b"sleep", True) in seen
        assert len(seen) == 2
        assert parent.poll() is None
        parent.stdin.close()
    assert parent.returncode == 1  # EOFError: it was not killed


def test_a_name_with_brackets_and_spaces_is_no_field():
    """The name of a process may hold whatever would look like the fields behind it."""
    rest = " ".join(["S", "7", "8", "9", *(["0"] * 15), "250", "0"])
    session, member = _parse(5, f"5 (a) S 1 2 3 (b)) {rest}".encode())
    assert (session, member.pid, member.parent, member.is_zombie) == (9, 5, 7, False)
    assert member.name == b"a) S 1 2 3 (b)"
    assert member.started_s == 250 / os.sysconf("SC_CLK_TCK")
