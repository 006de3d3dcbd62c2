"""Worker processes, for real: what interrupts them, and what does not."""

from __future__ import annotations

import functools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs

from bargein.processes import (
    PythonWorker,
    WorkerCall,
    WorkerCallError,
    WorkerDiedError,
    WorkerStartError,
)
from bargein.tools import Ladder, WorkerError

FAST = Ladder(int_s=0.4, term_s=0.3, kill_s=2.0)
PATIENT = Ladder(int_s=20, term_s=5, kill_s=2)

pytestmark = [pytest.mark.usefixtures("functions"), pytest.mark.proof]


@pytest.fixture
async def worker():
    """An open worker that a polite function has all the time with."""
    with trio.fail_after(60):
        async with PythonWorker(ladder=PATIENT).open() as worker:
            yield worker
            process = worker.pid
    if process is not None:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def f(name: str) -> str:
    return f"child_functions:{name}"


@pytest.fixture
def cut(wait_until):
    """Call a function, and cancel the call once the function has made its file."""

    async def call_and_cut(worker: PythonWorker, name: str, up: Path, **kwargs: object) -> None:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(worker.call, f(name), {"path": str(up), **kwargs})
                await wait_until(up.exists)
                scope.cancel()
        assert scope.cancelled_caught

    return call_and_cut


class TestCalls:
    """Calls that nobody interrupts."""

    async def test_a_function_is_called_by_path_or_by_itself(self, worker):
        """The value comes back; the process is another one than ours."""
        assert await worker.call(f("echo"), {"value": {"a": (1, None)}}) == {"a": [1, None]}
        assert await worker.call(os.path.join, {"a": "by itself"}) == "by itself"
        assert await worker.call(f("pid")) == worker.pid != os.getpid()

    async def test_the_process_starts_with_the_first_call_and_stays(self, worker):
        """Variables survive from call to call."""
        assert worker.pid is None
        calls = [WorkerCall() for _ in range(3)]
        assert [await worker.call(f("count"), call=call) for call in calls] == [1, 2, 3]
        assert {(call.is_begun, call.state_lost) for call in calls} == {(True, False)}

    async def test_calls_take_turns_in_order(self, worker):
        """One function runs at a time; the others wait in the order in which they came."""
        order: list[int] = []

        async def call(number: int) -> None:
            order.append(await worker.call(f("echo"), {"value": number, "delay_s": 0.01}))

        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(call, number)
                await trio.testing.wait_all_tasks_blocked()
        assert order == list(range(5))

    async def test_what_a_function_writes_is_captured_and_labelled(self, worker, capfd):
        """stdout, stderr and terminal are heard by the call's listener; its stdin is empty."""
        said: dict[str, str] = {}

        def hear(stream: str, text: str) -> None:
            said[stream] = said.get(stream, "") + text

        await worker.call(f("count"))
        capfd.readouterr()  # our own log of its start
        assert await worker.call(f("write"), on_output=hear) == ""
        assert said == {
            "stdout": "printed\nby descriptor\nby a child\nunfinished",
            "stderr": "to stderr\n",
            "tty": "to the terminal\n",
        }
        assert capfd.readouterr() == ("", "")

    async def test_all_it_has_written_is_heard_before_the_call_returns(self, worker):
        """However much was written just before the end, nothing is reported afterwards."""
        for _ in range(3):
            heard = 0

            def hear(stream: str, text: str) -> None:
                nonlocal heard
                heard += len(text)

            await worker.call(f("flood"), on_output=hear)
            assert heard == 3_000_001

    async def test_what_is_written_between_calls_belongs_to_none(self, worker, wait_until):
        """A thread that an earlier call has left is logged, and not heard as the next call."""
        said: list[str] = []
        with capture_logs() as logs:
            await worker.call(f("later"), {"delay_s": 0.05}, on_output=lambda _, t: said.append(t))
            await wait_until(lambda: any(line["event"] == "worker_writes" for line in logs))
        (line,) = [line for line in logs if line["event"] == "worker_writes"]
        assert line["pii_text"] == "of an earlier call\n"
        assert said == []

    async def test_a_listener_that_fails_is_logged_and_hurts_nobody(self, worker):
        """The call goes on."""

        def hear(stream: str, text: str) -> None:
            raise LookupError("secret")

        with capture_logs() as logs:
            await worker.call(f("write"), on_output=hear)
        (line, *_) = [line for line in logs if line["event"] == "worker_listener_failed"]
        assert (line["error"], line["pii_error"]) == ("LookupError", "secret")
        assert await worker.call(f("count")) == 1

    async def test_a_function_may_close_its_streams(self, worker):
        """The worker is usable all the same."""
        await worker.call(f("close_streams"))
        assert await worker.call(f("count")) == 1


class TestErrors:
    """What goes wrong in the function, and around it."""

    async def test_what_a_function_returns_runs_no_code_of_ours(self, worker):
        """A value is returned as JSON or not at all; nothing is unpickled in the parent."""
        with pytest.raises(WorkerCallError, match="a Bomb cannot leave the worker") as caught:
            await worker.call(f("bomb"))
        assert caught.value.class_name == "TypeError"
        assert await worker.call(f("count")) == 1

    async def test_an_exception_is_told_by_class_text_and_traceback(self, worker):
        """The worker lives on; the traceback begins at the function."""
        with pytest.raises(WorkerCallError, match="LookupError: nothing here") as caught:
            await worker.call(f("fail"), {"text": "nothing here"})
        error = caught.value
        assert (error.class_name, error.text) == ("LookupError", "nothing here")
        assert error.traceback_text.startswith("Traceback (most recent call last):")
        assert "_child_functions" not in error.traceback_text
        assert "raise LookupError(text)" in error.traceback_text
        assert await worker.call(f("count")) == 1

    @pytest.mark.parametrize(
        ("name", "kwargs", "class_name", "text"),
        [
            ("leave", {"code": 3}, "SystemExit", "3"),
            ("loud", {}, "Loud", ""),
            ("impossible", {}, "TypeError", "a function cannot leave the worker"),
            ("huge", {}, "ValueError", "at most 16777216 can be returned"),
            ("nowhere", {}, "AttributeError", "nowhere"),
            ("fail", {"wrong": 1}, "TypeError", "wrong"),
        ],
    )
    async def test_whatever_it_raises_the_worker_lives_on(
        self, worker, name, kwargs, class_name, text
    ):
        """An exit, a result that cannot be sent, a missing function: each is the call's error."""
        with pytest.raises(WorkerCallError) as caught:
            await worker.call(f(name), kwargs)
        assert caught.value.class_name == class_name
        assert text in caught.value.text
        assert await worker.call(f("count")) == 1

    async def test_a_process_that_dies_is_an_error_and_the_next_call_has_a_new_one(
        self, worker, state_of
    ):
        """The effect is unknown, the next call learns of the lost state, and no fork is left."""
        fork = await worker.call(f("fork"))
        with pytest.raises(WorkerDiedError, match=r"exit code 4.*is unknown"):
            await worker.call(f("die"), {"code": 4})
        assert state_of(fork) in "Z-"
        with pytest.raises(WorkerCallError, match=r"gone \(the worker was replaced") as caught:
            await worker.call(f("fail"), {"text": "gone"})
        assert caught.value.state_lost
        call = WorkerCall()
        await worker.call(f("count"), call=call)
        assert not call.state_lost

    async def test_a_fork_does_not_hide_the_end_of_its_process(self):
        """Nor where hang-ups are ignored, which end a fork with its process otherwise."""
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            with trio.fail_after(30):
                async with PythonWorker(ladder=PATIENT).open() as worker:
                    await worker.call(f("ignore_hang_up"))
                    await worker.call(f("fork"))
                    with pytest.raises(WorkerDiedError, match="exit code 4"):
                        await worker.call(f("die"), {"code": 4})
        finally:
            signal.signal(signal.SIGHUP, before)

    async def test_arguments_that_cannot_be_sent_start_nothing(self, worker):
        """The error names the function."""
        with pytest.raises(TypeError, match="arguments of 'child_functions:echo'"):
            await worker.call(f("echo"), {"value": lambda: None})
        assert worker.pid is None

    async def test_a_worker_must_be_open(self):
        """Before and after the block a call is an error."""
        worker = PythonWorker("adder")
        with pytest.raises(WorkerError, match="adder is not open: use"):
            await worker.call(f("count"))
        async with worker.open():
            pass
        with pytest.raises(WorkerError, match="adder is not open: use"):
            await worker.call(f("count"))

    async def test_a_process_that_does_not_start_is_an_error(self, tmp_path, monkeypatch):
        """A Python that cannot be run, ends at once, or never gets ready: each leaves nothing."""
        script = tmp_path / "python"
        script.write_text("#!/bin/sh\nexit 3\n")
        monkeypatch.setattr(sys, "executable", str(script))
        async with PythonWorker(start_s=0.3).open() as worker:
            with pytest.raises(WorkerStartError, match="cannot be started"):
                await worker.call(f("count"))
            script.chmod(0o755)
            with pytest.raises(WorkerStartError, match="exit code 3"):
                await worker.call(f("count"))
            script.write_text("#!/bin/sh\nexec sleep 60\n")
            with pytest.raises(WorkerStartError, match=r"not ready within 0\.3 s"):
                await worker.call(f("count"))
            assert worker.pid is None

    async def test_it_leaves_no_descriptor_open(self):
        """However a worker ends, this process has as many descriptors as before."""
        before = len(os.listdir("/proc/self/fd"))
        async with PythonWorker().open() as worker:
            await worker.call(f("count"))
            with pytest.raises(WorkerDiedError):
                await worker.call(f("die"), {"code": 1})
            await worker.call(f("count"))
        assert len(os.listdir("/proc/self/fd")) == before


class TestInterrupts:
    """The rule of busy and idle."""

    async def test_a_busy_function_is_interrupted_and_the_state_is_kept(
        self, cut, worker, tmp_path
    ):
        """Cancelling ends the function by KeyboardInterrupt; process and variables stay."""
        await worker.call(f("count"))
        began = time.monotonic()
        await cut(worker, "doze", tmp_path / "up")
        assert time.monotonic() - began < 10
        call = WorkerCall()
        assert await worker.call(f("count"), call=call) == 2
        assert not call.state_lost

    async def test_a_late_result_is_dropped(self, cut, worker, tmp_path):
        """A function that returns a value long after the interrupt has it heard by nobody."""
        pid = await worker.call(f("pid"))
        await cut(worker, "stubborn", tmp_path / "up", seconds=0.3)
        assert await worker.call(f("echo"), {"value": "mine"}) == "mine"
        assert await worker.call(f("pid")) == pid

    async def test_the_caller_waits_until_the_function_has_ended(self, cut, worker, tmp_path):
        """When the cut call returns, nothing of the function runs any more."""
        await cut(worker, "stubborn", tmp_path / "up", seconds=0.3)
        assert (tmp_path / "up.ended").exists()

    async def test_a_sigint_that_means_no_call_does_nothing(self, worker, tmp_path):
        """Signals from elsewhere, in a flood, neither end the worker nor a function."""
        pid = await worker.call(f("pid"))
        is_over = threading.Event()

        def shoot() -> None:
            while not is_over.is_set():
                os.kill(pid, signal.SIGINT)
                time.sleep(0.0002)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, shoot)
            try:
                for number in range(200):
                    assert await worker.call(f("echo"), {"value": number}) == number
            finally:
                is_over.set()
        assert await worker.call(f("pid")) == pid

    async def test_a_cancel_around_the_end_of_a_call_hurts_nobody(self, worker):
        """At any time around the end the call has its own value or none; the worker is the same."""
        pid = await worker.call(f("pid"))
        times = random.Random(8)
        values = cut = 0
        while min(values, cut) < 20:  # on a busy machine most calls are cut
            number = values + cut
            with trio.move_on_after(times.uniform(0, 0.003)) as scope:
                kwargs = {"value": number, "delay_s": 0.001}
                assert await worker.call(f("echo"), kwargs) == number
                values += 1
            cut += scope.cancelled_caught
        assert await worker.call(f("pid")) == pid

    async def test_a_call_that_waits_its_turn_disturbs_nobody_when_cancelled(
        self, worker, tmp_path, wait_until
    ):
        """Its function never runs, and the one that runs is not interrupted."""
        values: list[str] = []
        up = tmp_path / "up"

        async def first() -> None:
            values.append(await worker.call(f("doze"), {"path": str(up), "seconds": 0.3}))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(first)
            await wait_until(up.exists)
            call = WorkerCall()
            with trio.move_on_after(0.01):
                await worker.call(f("count"), call=call)
            assert not call.is_begun
        assert values == ["slept"]
        assert await worker.call(f("count")) == 1

    async def test_a_call_that_is_cancelled_while_the_process_starts(self, orphans_are_ours):
        """Its function never runs, and the next call has the process."""
        async with PythonWorker().open() as worker:
            call = WorkerCall()
            with trio.move_on_after(0.01):
                await worker.call(f("count"), call=call)
            assert not call.is_begun
            assert await worker.call(f("count"), call=call) == 1
            assert not call.state_lost

    async def test_a_function_inside_the_c_librarys_system_is_interrupted(
        self, cut, worker, tmp_path
    ):
        """system(3) ignores SIGINT, and its command is ended; the signal is sent again after it."""
        pid = await worker.call(f("pid"))
        await cut(worker, "c_system", tmp_path / "up")
        assert await worker.call(f("pid")) == pid

    async def test_what_a_cut_function_has_started_is_stopped_and_no_more(
        self, cut, tmp_path, is_there, orphans_are_ours, state_of
    ):
        """Its processes are gone, deaf ones too; those of an earlier call live with the worker."""
        async with PythonWorker(ladder=Ladder(int_s=20, term_s=0.3, kill_s=2)).open() as worker:
            helper = await worker.call(f("helper"))
            await trio.sleep(0.03)  # the kernel's clock of starts has steps of 10 ms
            up = tmp_path / "up"
            await cut(worker, "family", up)
            deaf, polite = map(int, up.read_text().split())
            assert await worker.call(f("count")) == 1  # it reaps its children when it makes others
            alive = [pid for pid in (deaf, polite, helper) if state_of(pid) not in "Z-"]
            assert alive == [helper]
        assert not any(map(is_there, (deaf, polite, helper)))


class TestReplacement:
    """The last resort."""

    @pytest.mark.parametrize(
        ("name", "ended_by"),
        [
            ("deaf", "SIGTERM"),
            ("native", "SIGTERM"),
            ("deaf_to_both", "SIGKILL"),
            ("stopped", "SIGKILL"),
        ],
    )
    async def test_a_deaf_worker_is_replaced_and_says_so(
        self, cut, tmp_path, is_there, name, ended_by
    ):
        """It gets the time for SIGINT and is then ended; the next call learns of that."""
        async with PythonWorker("w", ladder=FAST).open() as worker:
            pid = await worker.call(f("pid"))
            with capture_logs() as logs:
                await cut(worker, name, tmp_path / "up")
            assert not is_there(pid)
            assert worker.pid is None
            (line,) = [line for line in logs if line["event"] == "worker_lost"]
            assert line["log_level"] == "warning"
            assert (line["pid"], line["ended_by"]) == (pid, ended_by)
            call = WorkerCall()
            assert await worker.call(f("count"), call=call) == 1
            assert call.state_lost

    async def test_force_kills_at_once(self, tmp_path, is_there):
        """With force asked for, a deaf function has no time."""
        async with PythonWorker(ladder=PATIENT).open() as worker:
            began = time.monotonic()
            with trio.move_on_after(0.5):
                await worker.call(
                    f("deaf_to_both"), {"path": str(tmp_path / "up")}, is_forced=lambda: True
                )
            assert time.monotonic() - began < 10
            assert worker.pid is None

    async def test_what_a_function_does_to_sigint_lasts_as_long_as_its_call(
        self, cut, worker, tmp_path
    ):
        """A function that ignores SIGINT and returns leaves a worker that hears it."""
        await worker.call(f("ignore_sigint"))
        await worker.call(f("count"))
        await cut(worker, "doze", tmp_path / "up")
        assert await worker.call(f("count")) == 2

    async def test_closing_while_a_call_runs_ends_it_by_the_rule(
        self, tmp_path, is_there, wait_until
    ):
        """A call that is cancelled with the worker holds up its end no longer than the ladder."""
        async with trio.open_nursery() as nursery:
            worker = PythonWorker(ladder=FAST)

            async def serve(task_status: trio.TaskStatus[None]) -> None:
                async with worker.open():
                    task_status.started()
                    await trio.sleep_forever()

            await nursery.start(serve)
            up = tmp_path / "up"
            nursery.start_soon(worker.call, f("deaf_to_both"), {"path": str(up)})
            await wait_until(up.exists)
            pid = worker.pid
            nursery.cancel_scope.cancel()
        assert pid is not None
        assert not is_there(pid)


async def test_any_mix_of_cut_calls_leaves_a_worker_that_works(tmp_path, orphans_are_ours):
    """Thirty calls that are polite, deaf, stopped or dead are cut at any time of theirs."""
    choices = random.Random(3)
    names = ["doze", "native", "deaf", "stopped", "c_system", "family", "echo", "die"]

    async def one(worker: PythonWorker, number: int) -> None:
        await trio.sleep(choices.uniform(0, 2))
        name, call = choices.choice(names), WorkerCall()
        is_forced = choices.random() < 0.2
        argument = {"echo": "value", "die": "code"}.get(name, "path")
        value: object = number if name in ("echo", "die") else str(tmp_path / str(number))
        with trio.CancelScope() as scope:

            async def cut() -> None:
                while not call.is_begun:  # noqa: ASYNC110 - a call that begins sets no event
                    await trio.sleep(0.01)
                await trio.sleep(choices.choice([0, 0.001, 0.02, 0.3]))
                scope.cancel()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(cut)
                with suppress(WorkerDiedError):
                    told = {"call": call, "is_forced": lambda: is_forced}
                    assert await worker.call(f(name), {argument: value}, **told) == number
                nursery.cancel_scope.cancel()

    with trio.fail_after(120):
        async with PythonWorker(ladder=FAST).open() as worker:
            async with trio.open_nursery() as nursery:
                for number in range(30):
                    nursery.start_soon(one, worker, number)
            assert await worker.call(f("echo"), {"value": "well"}) == "well"


SCRIPT = """
class Point:
    def __init__(self, x):
        self.x = x

def double(point):
    return {"x": 2 * point.x, "is_point": isinstance(point, Point)}

def native():
    return sum(range(10**12))

if __name__ == "__main__":
    import trio
    from bargein.processes import PythonWorker

    async def main():
        async with PythonWorker().open() as worker:
            point = await worker.call(double, {"point": Point(21)})
            print("point", point["x"], point["is_point"], worker.pid, flush=True)
            await worker.call(native)

    trio.run(main)
"""


@pytest.mark.parametrize("hang_up", [":", "trap '' HUP"])
async def test_a_script_has_a_worker_that_knows_it_and_dies_with_it(
    tmp_path: Path, wait_until, state_of, hang_up: str
):
    """The main script's own functions and classes are found; once it is killed the worker ends.

    What is under its ``__main__`` is not run again, and native code that holds the interpreter
    does not save the worker; neither does a script that ignores hang-ups, as under nohup.
    """
    path = tmp_path / "app.py"
    path.write_text(SCRIPT)
    script = subprocess.Popen(  # noqa: ASYNC220 - it is the test's own
        ["sh", "-c", f'{hang_up}; exec "$0" "$1"', sys.executable, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with script:
        assert script.stdout is not None
        said = next(line.split() for line in script.stdout if line.startswith("point"))
        pid = int(said[3])
        assert said[:3] == ["point", "42", "True"]
        await wait_until(lambda: state_of(pid) == "R")
        script.kill()
    await wait_until(lambda: state_of(pid) in "Z-")


async def a_sync_looking_one() -> None:
    pass


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        ("json", "write 'module:qualname'"),
        (":dumps", "write 'module:qualname'"),
        ("json:", "write 'module:qualname'"),
        (lambda: None, "define it with def at the top of a module"),
        (functools.partial(json.dumps, 1), "define it with def at the top of a module"),
        (a_sync_looking_one, "is async"),
    ],
    ids=["no name", "no module", "empty name", "lambda", "partial", "async"],
)
async def test_what_no_process_can_import_is_refused(worker, function, problem):
    """The error says what to do."""
    with pytest.raises(ValueError, match=problem):
        await worker.call(function, {})


async def test_a_function_is_found_by_its_module_and_name(worker):
    """By the function itself, by a method, or by a path of both, which imports nothing here."""
    assert await worker.call(json.dumps, {"obj": [1]}) == "[1]"
    assert await worker.call("json:dumps", {"obj": [1]}) == "[1]"
    assert "json.tool" not in sys.modules
    with pytest.raises(WorkerCallError):
        await worker.call("json.tool:nothing", {})
    assert "json.tool" not in sys.modules
