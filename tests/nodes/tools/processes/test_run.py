"""Commands as processes: output, ends, and what is left of them."""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs

from bargein.processes import CommandResult, run_command
from bargein.tools import CommandError, OutputLimits, SignalLadder

pytestmark = pytest.mark.proof

FAST = SignalLadder(int_s=0.3, term_s=0.3, kill_s=5.0)
SLOW = SignalLadder(int_s=20)


async def test_output_is_captured_by_stream_and_told_to_the_model():
    """Both streams are kept apart, passed on as they come, and stand in the result's words."""
    said: list[tuple[str, str]] = []
    result = await run_command(
        ["sh", "-c", "echo one; echo two >&2; exit 3"],
        output=lambda stream, text: said.append((stream, text)),
    )
    assert sorted(said) == [("stderr", "two\n"), ("stdout", "one\n")]
    assert str(result) == "exit code 3\nstdout:\none\nstderr:\ntwo"
    assert (result.exit_code, result.left_out) == (3, 0)
    assert result.output == {"stdout": "one\n", "stderr": "two\n"}
    assert result.stopped.ended_by == "itself"


async def test_lines_are_passed_on_while_the_command_runs():
    """A line is heard at once, not when the command ends."""
    heard = trio.Event()
    async with trio.open_nursery() as nursery:

        async def run() -> None:
            await run_command(
                ["sh", "-c", "echo here; exec sleep 60"],
                output=lambda stream, text: heard.set(),
                ladder=FAST,
            )

        nursery.start_soon(run)
        with trio.fail_after(10):
            await heard.wait()
        nursery.cancel_scope.cancel()


async def test_nothing_written_is_said():
    """A command that is silent, and one that a signal ended, say so."""
    assert str(await run_command(["true"])) == "exit code 0\nit wrote nothing"
    result = await run_command(["sh", "-c", "kill -SEGV $$"])
    assert str(result) == "ended by SIGSEGV\nit wrote nothing"


async def test_ten_megabytes_are_bounded():
    """Of a flood the head and the tail are kept, and all that is left out is counted."""
    code = (
        "for i in range(0, 200_000, 1000):\n"
        "    print('\\n'.join(f'{j:06d} ' + 'x' * 43 for j in range(i, i + 1000)))\n"
        "print('end', end='')\n"
    )
    live: list[str] = []
    limits = OutputLimits(head=100, tail=53, live=1000)
    with trio.fail_after(60):
        result = await run_command(
            [sys.executable, "-S", "-c", code],
            output=lambda stream, text: live.append(text),
            limits=limits,
        )
    total = 200_000 * 51 + 3
    assert total > 10_000_000
    assert result.left_out == total - 153
    text = result.output["stdout"]
    assert text.startswith("000000 xxx")
    assert f"[{total - 153} characters left out]" in text
    assert text.endswith(f"199999 {'x' * 43}\nend"[-53:])
    assert len(text) < 200
    assert "".join(live)[:1000] == "".join(f"{i:06d} {'x' * 43}\n" for i in range(20))[:1000]
    assert len("".join(live)) < 1100
    assert live[-1] == "\n[the rest is not shown]\n"


async def test_it_reads_what_it_is_given_and_else_nothing():
    """stdin is a text, or at its end from the start; a command need not read it."""
    result = await run_command(["cat"], stdin="für dich")
    assert result.output["stdout"] == "für dich"
    assert (await run_command(["cat"])).output["stdout"] == ""
    result = await run_command(["true"], stdin="x" * 1_000_000)
    assert result.exit_code == 0


async def test_folder_and_variables_are_set(tmp_path: Path):
    """cwd and env hold in the command; the other variables are ours."""
    result = await run_command("pwd; echo $A $HOME", shell=True, cwd=tmp_path, env={"A": "a"})
    assert result.output["stdout"].split() == [str(tmp_path), "a", os.environ["HOME"]]


async def test_arguments_are_never_read_by_a_shell():
    """What would mean something to a shell is an argument like any other."""
    result = await run_command(["echo", "$HOME; rm -rf *", "`id`"])
    assert result.output["stdout"] == "$HOME; rm -rf * `id`\n"


class TestTerminal:
    """Commands with a terminal of their own."""

    async def test_all_it_writes_to_a_terminal_is_captured(self):
        """Its three streams are the terminal, /dev/tty is it too, and reading ends at once."""
        code = (
            "import os, sys\n"
            "print([os.isatty(i) for i in range(3)], os.environ['TERM'], os.get_terminal_size())\n"
            "with open('/dev/tty', 'w') as tty: print('secret?', file=tty)\n"
            "print(repr(sys.stdin.read()), file=sys.stderr)\n"
        )
        with trio.fail_after(20):
            result = await run_command([sys.executable, "-S", "-c", code], tty=True)
        assert result.output["tty"].splitlines() == [
            "[True, True, True] dumb os.terminal_size(columns=80, lines=24)",
            "secret?",
            "''",
        ]

    async def test_nothing_of_the_end_is_lost(self):
        """What is written just before the end comes through, every time."""
        for _ in range(5):
            result = await run_command(["printf", "a\\nb\\nc"], tty=True)
            assert result.output == {"tty": "a\nb\nc"}

    async def test_without_one_there_is_no_terminal_to_write_to(self):
        """A command without tty=True cannot reach our terminal either: it has none."""
        result = await run_command("echo boo > /dev/tty", shell=True)
        assert result.exit_code != 0
        assert "/dev/tty" in result.output["stderr"]

    async def test_a_program_that_is_missing_is_an_exit_code(self):
        """Its start is past the point where it could be an error: the shells' 127 tells it."""
        result = await run_command(["no-such-program"], tty=True)
        assert (result.exit_code, result.output["tty"]) == (
            127,
            "no-such-program: No such file or directory\n",
        )

    async def test_it_is_interrupted_like_any_other(self):
        """The ladder ends it at its first rung."""
        ended: list[CommandResult] = []
        with trio.move_on_after(0.3):
            await run_command(["sleep", "60"], tty=True, on_end=ended.append, ladder=SLOW)
        assert [result.stopped.ended_by for result in ended] == ["SIGINT"]


def read_pids(path: Path) -> list[int]:
    return [int(pid) for pid in path.read_text().split()]


@pytest.fixture
def cut(wait_until):
    """Run a command, cancel it once a file is there, and return how it ended."""

    async def run_and_cut(command: list[str], up: Path, **options: object) -> CommandResult:
        ended: list[CommandResult] = []
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(run_command, command, on_end=ended.append, **options))
                await wait_until(up.exists)
                scope.cancel()
        assert scope.cancelled_caught
        (result,) = ended
        return result

    return run_and_cut


POLITE = """
import pathlib, sys, time
try:
    pathlib.Path(sys.argv[1]).touch(); time.sleep(60)
except KeyboardInterrupt:
    print('x' * 200_000); print("goodbye"); sys.exit(5)
"""


async def test_a_cancelled_command_is_heard_to_its_end(cut, python, tmp_path, is_there):
    """One that says goodbye at length is not delayed by a full pipe, and what it says is kept."""
    up = tmp_path / "up"
    result = await cut([*python(POLITE), str(up)], up, ladder=SignalLadder(int_s=20))
    assert (result.exit_code, result.stopped.ended_by) == (5, "SIGINT")
    assert result.output["stdout"].endswith("goodbye\n")
    assert result.stopped.took_s < 10
    assert not is_there(result.stopped.pid)


DEAF_FAMILY = """
import os, pathlib, signal, subprocess, sys, time
for number in (2, 15):
    signal.signal(number, signal.SIG_IGN)
pids = [os.getpid()]
for how in ({}, {"process_group": 0}):
    pids.append(subprocess.Popen(["sleep", "60"], **how).pid)
pathlib.Path(sys.argv[1] + "~").write_text(" ".join(map(str, pids)))
os.rename(sys.argv[1] + "~", sys.argv[1])
time.sleep(60)
"""


async def test_nothing_of_a_deaf_family_is_left(cut, python, tmp_path, is_there, orphans_are_ours):
    """Leader and grandchildren, also in a new group, are gone from the process table."""
    up = tmp_path / "up"
    result = await cut([*python(DEAF_FAMILY), str(up)], up, ladder=FAST)
    pids = read_pids(up)
    assert (result.stopped.ended_by, result.stopped.swept, result.stopped.left) == ("SIGKILL", 2, 0)
    assert str(result).startswith("ended by SIGKILL")
    assert not any(map(is_there, pids))


async def test_force_kills_at_once(cut, python, tmp_path):
    """With force asked for, a deaf command has no time at all."""
    up = tmp_path / "up"
    began = time.monotonic()
    result = await cut([*python(DEAF_FAMILY), str(up)], up, is_forced=lambda: True)
    assert result.stopped.ended_by == "SIGKILL"
    assert time.monotonic() - began < 10
    assert result.stopped.took_s < 2


async def test_what_a_command_leaves_running_is_stopped_with_it(orphans_are_ours, is_there):
    """A background process that holds the output open neither lives on nor delays the end."""
    with trio.fail_after(10):
        result = await run_command("sleep 60 & echo $!", shell=True)
    assert result.exit_code == 0
    assert not is_there(int(result.output["stdout"]))


async def test_a_daemon_has_left_the_family():
    """A program that makes a session of its own lives on; it does not delay the end either."""
    code = (
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    os.write(1, b'%d\\n' % os.getpid())\n"
        "    time.sleep(60)\n"
        "os.read(0, 1); time.sleep(0.3)\n"
    )
    with trio.fail_after(10):
        result = await run_command([sys.executable, "-S", "-c", code])
    pid = int(result.output["stdout"])
    os.kill(pid, 0)
    os.kill(pid, signal.SIGKILL)


async def test_cancelled_before_it_started_nothing_starts():
    """In a cancelled scope no process starts, and no end is reported."""
    ended: list[CommandResult] = []
    with trio.CancelScope() as scope:
        scope.cancel()
        await run_command(["sleep", "60"], on_end=ended.append)
    assert scope.cancelled_caught
    assert ended == []


async def test_a_command_hears_sigint_though_we_ignore_it():
    """Where this process is a shell's background job, its commands are not deaf like it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended: list[CommandResult] = []
    try:
        with trio.move_on_after(0.5):
            await run_command(["sleep", "60"], on_end=ended.append, ladder=SLOW)
    finally:
        signal.signal(signal.SIGINT, before)
    assert [result.stopped.ended_by for result in ended] == ["SIGINT"]


async def test_it_leaves_no_descriptor_open():
    """However a command ends, this process has as many descriptors as before."""

    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    await run_command(["true"])
    before = count()
    await run_command(["true"], tty=True)
    await run_command(["cat"], stdin="x")
    with pytest.raises(CommandError):
        await run_command(["no-such-program"])
    with trio.move_on_after(0.05):
        await run_command(["sleep", "60"], ladder=FAST)
    assert count() == before


async def test_mistakes_are_told_with_what_to_do(tmp_path: Path):
    """What cannot be started is an error that names it."""
    with pytest.raises(CommandError, match="'no-such-program' cannot be started"):
        await run_command(["no-such-program"])
    with pytest.raises(CommandError, match="nowhere"):
        await run_command(["true"], cwd=tmp_path / "nowhere")
    with pytest.raises(CommandError, match="null"):
        await run_command(["echo", "a\0b"])
    with pytest.raises(TypeError, match="a list of program and arguments, not 'ls'"):
        await run_command("ls")
    with pytest.raises(TypeError, match="one string, not"):
        await run_command(["ls"], shell=True)
    with pytest.raises(TypeError, match="empty"):
        await run_command([])
    with pytest.raises(ValueError, match="leave out stdin or tty"):
        await run_command(["cat"], stdin="x", tty=True)
    with pytest.raises(ValueError, match=r"head=\) is a whole number from 0, not -1"):
        OutputLimits(head=-1)


async def test_logs_tell_how_it_ended_and_nothing_of_what_it_said():
    """One line for each command, without its arguments or output."""
    with capture_logs() as logs:
        await run_command(["sh", "-c", "echo secret"])
    (line,) = logs
    assert line["event"] == "command_ended"
    assert (line["exit_code"], line["ended_by"], line["swept"]) == (0, "itself", 0)
    assert "secret" not in str(line)
