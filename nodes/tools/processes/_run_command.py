"""Runs a command as a process with captured output and a certain end."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import trio

from bargein.bridge.validation.numbers import check_numbers
from bargein.nodes._excerpt import Excerpt
from bargein.nodes.processes import OnOutput, OutputStream, SignalLadder, StopReport
from bargein.nodes.processes._process import Process, inherited, start_process
from bargein.nodes.processes._process_output import TERM, CapturedOutput
from bargein.nodes.processes._termination import DEFAULT_LADDER, SPARE_S, never
from bargein.routes.logs import get_logger

from .._errors import CommandError

_log = get_logger()
_LAUNCHER = Path(__file__).with_name("_launch_child.py")


@dataclass(frozen=True, slots=True)
class OutputLimits:
    """How much of a command's output is kept, in characters per stream."""

    head: int = 8_000
    """How much of the beginning is kept; with the tail about 4,000 tokens for a model."""
    tail: int = 8_000
    """How much of the end is kept."""
    live: int = 256_000
    """How much is passed on while it runs; later output is only kept."""

    def __post_init__(self) -> None:
        check_numbers(self, OutputLimits, head=0, tail=0, live=0)


DEFAULT_LIMITS = OutputLimits()


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended, and what it wrote."""

    exit_code: int
    """The exit code; a negative number is the signal that ended it."""
    output: Mapping[OutputStream, str]
    """The streams "stdout" and "stderr", or "tty", each with its middle left out if it is long."""
    left_out: int
    """How many characters were left out of all streams."""
    ran_s: float
    stopped: StopReport
    """How the command and everything it started were stopped."""

    def __str__(self) -> str:
        """Return the result as text for a model."""
        code = self.exit_code
        parts = [f"exit code {code}" if code >= 0 else f"ended by {_signal_name(-code)}"]
        for stream, text in self.output.items():
            if text:
                parts.append(f"{stream}:\n{text.rstrip(chr(10))}")
        if len(parts) == 1:
            parts.append("it wrote nothing")
        return "\n".join(parts)


async def run_command(
    command: Sequence[str] | str,
    *,
    output: OnOutput | None = None,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    inherit: Iterable[str] = (),
    stdin: str | None = None,
    tty: bool = False,
    shell: bool = False,
    ladder: SignalLadder = DEFAULT_LADDER,
    limits: OutputLimits = DEFAULT_LIMITS,
    is_forced: Callable[[], bool] = never,
    on_end: Callable[[CommandResult], None] | None = None,
) -> CommandResult:
    """Run a command to its end.

    Cancelling stops it with the signals of the ladder, and raises ``Cancelled`` once that is done,
    which takes at most the sum of the ladder's times and a second. However it ends, no process of
    its session is left: what it started in the background is stopped too.

    Args:
        command: The program and its arguments; one string for ``shell=True``.
        output: Called with the stream and one or more whole lines.
        cwd: The working directory; ``None`` inherits ours.
        env: Environment variables, added to the few that it inherits (see ``_environment.py``) or
            replacing them.
        inherit: Names of further variables of ours to pass on.
        stdin: The text on its standard input; ``None`` for none.
        tty: Whether it gets a terminal for all its output; it cannot read from it.
        shell: Whether ``command`` is a line for ``/bin/sh``.
        ladder: The time of each signal.
        limits: How much of its output is kept.
        is_forced: Called repeatedly while it is being stopped; if it returns True, it is killed at
            once.
        on_end: Called once when it has ended, even after a cancel.

    Returns:
        The exit code and the output; an exit code other than 0 raises nothing.

    Raises:
        CommandError: It cannot be started.
        TypeError: The command is a string without ``shell=True``, or the reverse.
        ValueError: Both ``tty=True`` and ``stdin`` are given.
    """
    if tty and stdin is not None:
        raise ValueError("a command with tty=True reads nothing: leave out stdin or tty")
    arguments = _arguments(command, shell)
    if sys.platform == "win32":
        raise CommandError("commands as tools need the sessions of a POSIX system, not Windows")
    recorder = _OutputRecorder(("tty",) if tty else ("stdout", "stderr"), output, limits)
    began_s = trio.current_time()
    environment = {**inherited(inherit), **({"TERM": TERM} if tty else {}), **(env or {})}
    process = await _start(arguments, recorder, cwd, environment, has_input=stdin is not None)
    async with trio.open_nursery() as nursery:
        process.read_streams(nursery)
        if stdin is not None:
            nursery.start_soon(_feed, process, stdin.encode())
        try:
            await process.process.wait()
        finally:
            stopped = StopReport(process.pid, None, swept=0, left=1, took_s=math.inf)
            with trio.move_on_after(ladder.bound_s + SPARE_S, shield=True):
                stopped = await process.end(ladder, is_forced=is_forced)
            nursery.cancel_scope.cancel(reason="the command ended")
            code = process.process.poll()
            code = -signal.SIGKILL if code is None else code
            result = recorder.result(code, trio.current_time() - began_s, stopped)
            _log_result(result)
            if on_end is not None:
                on_end(result)
    return result


class _OutputRecorder:
    """Keeps a command's output within limits, and passes it on while it runs."""

    def __init__(
        self, streams: tuple[OutputStream, ...], output: OnOutput | None, limits: OutputLimits
    ) -> None:
        self.streams = streams
        self._output = output
        self._excerpts: dict[OutputStream, Excerpt] = {
            stream: Excerpt(limits.head, limits.tail) for stream in streams
        }
        self._live = dict.fromkeys(streams, limits.live)

    def record(self, stream: OutputStream, text: str) -> None:
        self._excerpts[stream].add(text)
        room = self._live[stream]
        self._live[stream] = max(0, room - len(text))
        if self._output is None or not room:
            return
        self._output(stream, text[:room])
        if len(text) > room:
            self._output(stream, "\n[the rest is not shown]\n")

    def result(self, code: int, ran_s: float, stopped: StopReport) -> CommandResult:
        output: dict[OutputStream, str] = {
            stream: str(excerpt) for stream, excerpt in self._excerpts.items()
        }
        left_out = sum(excerpt.left_out for excerpt in self._excerpts.values())
        return CommandResult(code, output, left_out, ran_s, stopped)


def _arguments(command: Sequence[str] | str, shell: bool) -> list[str]:
    if shell != isinstance(command, str):
        wants = "one string" if shell else "a list of program and arguments"
        raise TypeError(f"with shell={shell} a command is {wants}, not {command!r:.200}")
    arguments = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    if not arguments:
        raise TypeError("a command needs a program: the list is empty")
    return arguments


async def _start(
    arguments: list[str],
    recorder: _OutputRecorder,
    cwd: str | os.PathLike[str] | None,
    env: Mapping[str, str],
    *,
    has_input: bool,
) -> Process:
    captured = CapturedOutput(recorder.streams, recorder.record)
    out = next(iter(captured.theirs.values()))
    tty = "tty" in recorder.streams
    nothing = out if tty else subprocess.DEVNULL
    command = arguments
    if tty or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Otherwise commands of a service that runs as a shell's background job would inherit that
        # SIGINT is ignored.
        how = "terminal" if tty else "plain"
        command = [sys.executable, "-I", "-S", str(_LAUNCHER), how, *arguments]
    try:
        return await start_process(
            "command",
            command,
            env=env,
            cwd=cwd,
            captured=captured,
            stdin=subprocess.PIPE if has_input else nothing,
            stdout=out,
        )
    except (OSError, ValueError) as error:  # ValueError: a null character in an argument
        raise CommandError(f"{command[0]!r} cannot be started: {error}") from error


async def _feed(process: Process, data: bytes) -> None:
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):  # it does not read all
        await process.send(data)
    assert process.process.stdin is not None
    await process.process.stdin.aclose()


def _log_result(result: CommandResult) -> None:
    stopped = result.stopped
    keys = {
        "pid": stopped.pid,
        "exit_code": result.exit_code,
        "ended_by": stopped.ended_by,
        "swept": stopped.swept,
        "ran_s": round(result.ran_s, 3),
    }
    if stopped.left:
        _log.warning("command_survives", left=stopped.left, **keys)
    else:
        _log.debug("command_ended", **keys)


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
