"""Worker processes, for real: what interrupts them, and what does not."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs

from nodes.tools._processes import (
    Ladder,
    PythonWorker,
    WorkerCallError,
    WorkerDiedError,
    WorkerError,
    WorkerInterruptedError,
    WorkerStartError,
    WorkerState,
)

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
                assert worker.state is WorkerState.BUSY
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
        """Variables survive from call to call; the state is told by an enum."""
        assert (worker.state, worker.pid, worker.generation) == (WorkerState.DEAD, None, 0)
        reports = [await worker.run(f("count"), call_id=f"c{i}") for i in range(3)]
        assert [report.value for report in reports] == [1, 2, 3]
        assert [report.call_id for report in reports] == ["c0", "c1", "c2"]
        assert {(report.generation, report.state_lost) for report in reports} == {(1, False)}
        assert worker.state is WorkerState.IDLE

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
        """However much was written just before the end, none of it is heard later."""
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

    async def test_a_fork_of_the_worker_does_not_hold_up_its_end(self, worker):
        """A process forked off is ended with the worker, and hides its death from nobody."""
        await worker.call(f("fork"))
        with pytest.raises(WorkerDiedError):
            await worker.call(f("die"), {"code": 1})


class TestErrors:
    """What goes wrong in the function, and around it."""

    async def test_what_a_function_returns_runs_no_code_of_ours(self, worker):
        """A value leaves as JSON or not at all: nothing of it is unpickled here."""
        with pytest.raises(WorkerCallError, match="a Bomb cannot leave the worker") as caught:
            await worker.call(f("bomb"))
        assert caught.value.class_name == "TypeError"
        assert await worker.call(f("count")) == 1

    @pytest.mark.parametrize("how", ["stop", "kill", "garbage"])
    async def test_a_process_that_is_lost_in_a_call_is_replaced(self, tmp_path, wait_until, how):
        """Stopped, killed, or talking nonsense: the cut is bounded, and the next call works."""
        async with PythonWorker(ladder=FAST).open() as worker:
            up = tmp_path / "up"
            with trio.move_on_after(1), pytest.raises((WorkerDiedError, trio.Cancelled)):
                await worker.call(f("trouble"), {"path": str(up), "how": how})
            assert up.exists()
            began_s = trio.current_time()
            assert await worker.call(f("count")) == 1
            assert trio.current_time() - began_s < 2
            assert worker.generation == 2

    async def test_an_exception_is_told_by_class_text_and_traceback(self, worker):
        """The worker lives on; the traceback begins at the function."""
        with pytest.raises(WorkerCallError, match="LookupError: nothing here") as caught:
            await worker.call(f("fail"), {"text": "nothing here"})
        error = caught.value
        assert (error.class_name, error.text) == ("LookupError", "nothing here")
        assert error.traceback_text.startswith("Traceback (most recent call last):")
        assert "_child_functions" not in error.traceback_text
        assert "raise LookupError(text)" in error.traceback_text
        assert (await worker.call(f("count")), worker.generation) == (1, 1)

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

    async def test_a_process_that_dies_is_an_error_and_the_next_call_has_a_new_one(self, worker):
        """The error says that the effect is unknown, the next report that the state is lost."""
        assert await worker.call(f("count")) == 1
        with pytest.raises(WorkerDiedError, match=r"exit code 4.*is not known"):
            await worker.call(f("die"), {"code": 4})
        assert worker.state is WorkerState.DEAD
        report = await worker.run(f("count"))
        assert (report.value, report.generation, report.state_lost) == (1, 2, True)
        assert not (await worker.run(f("count"))).state_lost

    async def test_a_process_that_died_while_idle_is_replaced_before_the_call(
        self, worker, wait_until, state_of
    ):
        """The call works, and is told; so is a call that fails for want of the state."""
        pid = await worker.call(f("pid"))
        os.kill(pid, signal.SIGKILL)
        # Its first thread may be dead while others still end: then it cannot be waited for yet.
        threads = Path(f"/proc/{pid}/task")
        await wait_until(lambda: state_of(pid) == "Z" and len([*threads.iterdir()]) == 1)
        with pytest.raises(WorkerCallError, match=r"gone \(the worker was replaced") as caught:
            await worker.call(f("fail"), {"text": "gone"})
        assert caught.value.state_lost
        assert worker.generation == 2

    async def test_arguments_that_cannot_be_sent_start_nothing(self, worker):
        """The error names the function."""
        with pytest.raises(TypeError, match="arguments of 'child_functions:echo'"):
            await worker.call(f("echo"), {"value": lambda: None})
        assert worker.generation == 0

    async def test_a_worker_must_be_open(self):
        """Before and after the block a call is an error; so is opening it twice."""
        worker = PythonWorker("adder")
        with pytest.raises(WorkerError, match="'adder' is not open"):
            await worker.call(f("count"))
        async with worker.open():
            with pytest.raises(WorkerError, match="open already"):
                async with worker.open():
                    raise AssertionError
        with pytest.raises(WorkerError, match="'adder' is not open"):
            await worker.call(f("count"))

    async def test_a_process_that_does_not_start_is_an_error(self, tmp_path, monkeypatch):
        """A Python that cannot be run, ends at once, or never gets ready: each leaves nothing."""
        script = tmp_path / "python"
        script.write_text("#!/bin/sh\nexit 3\n")
        monkeypatch.setattr(sys, "executable", str(script))
        async with PythonWorker(start_s=0.3).open() as worker:
            with pytest.raises(WorkerStartError, match="cannot start"):
                await worker.call(f("count"))
            script.chmod(0o755)
            with pytest.raises(WorkerStartError, match="exit code 3"):
                await worker.call(f("count"))
            script.write_text("#!/bin/sh\nexec sleep 60\n")
            with pytest.raises(WorkerStartError, match=r"not ready within 0\.3 s"):
                await worker.call(f("count"))
            assert (worker.state, worker.generation) == (WorkerState.DEAD, 0)

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
        assert worker.state is WorkerState.IDLE
        report = await worker.run(f("count"))
        assert (report.value, report.generation, report.state_lost) == (2, 1, False)

    async def test_a_late_result_is_dropped(self, cut, worker, tmp_path):
        """A function that returns a value long after the interrupt has it heard by nobody."""
        await cut(worker, "stubborn", tmp_path / "up", seconds=0.3)
        assert await worker.call(f("echo"), {"value": "mine"}) == "mine"
        assert worker.generation == 1

    async def test_the_caller_waits_while_it_is_drained(self, cut, worker, tmp_path):
        """The state is DRAINING until the function has ended."""
        seen: set[WorkerState] = set()
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                while True:
                    seen.add(worker.state)
                    await trio.sleep(0.005)

            nursery.start_soon(watch)
            await cut(worker, "stubborn", tmp_path / "up", seconds=0.3)
            nursery.cancel_scope.cancel()
        assert {WorkerState.STARTING, WorkerState.BUSY, WorkerState.DRAINING} <= seen

    async def test_interrupt_is_a_verb_of_its_own(self, worker, tmp_path, wait_until):
        """interrupt() makes the function raise; the call tells that it was interrupted."""
        errors: list[WorkerInterruptedError] = []
        up = tmp_path / "up"

        async def call() -> None:
            try:
                await worker.call(f("doze"), {"path": str(up)})
            except WorkerInterruptedError as error:
                errors.append(error)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await wait_until(up.exists)
            assert worker.interrupt() is True
        assert [error.class_name for error in errors] == ["KeyboardInterrupt"]
        assert await worker.call(f("count")) == 1

    async def test_an_idle_worker_is_left_alone(self, worker):
        """Before the first call and between calls an interrupt does nothing, and says so."""
        assert worker.interrupt() is False
        await worker.call(f("count"))
        for _ in range(100):
            assert worker.interrupt() is False
        report = await worker.run(f("count"))
        assert (report.value, report.generation) == (2, 1)

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
        assert worker.generation == 1

    async def test_an_interrupt_around_the_end_of_a_call_hurts_nobody(self, worker):
        """At any time around the end the call has its value or was interrupted; the next works."""
        await worker.call(f("echo"), {"value": 0})
        times = random.Random(7)
        ends = {"value": 0, "interrupted": 0, "idle": 0}

        async def interrupt_at(at_s: float) -> None:
            while time.perf_counter() < at_s:
                await trio.lowlevel.checkpoint()
            ends["idle"] += not worker.interrupt()

        for number in range(200):
            began = time.perf_counter()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(interrupt_at, began + times.uniform(0, 0.003))
                try:
                    kwargs = {"value": number, "delay_s": 0.001}
                    assert await worker.call(f("echo"), kwargs) == number
                    ends["value"] += 1
                except WorkerInterruptedError:
                    ends["interrupted"] += 1
        assert await worker.call(f("echo"), {"value": "well"}) == "well"
        assert worker.generation == 1
        assert ends["value"] > 10
        assert ends["interrupted"] > 10

    async def test_a_cancel_around_the_end_of_a_call_hurts_nobody(self, worker):
        """At any time around the end the call has its own value or none; the worker is the same."""
        await worker.call(f("echo"), {"value": 0})
        times = random.Random(8)
        values = 0
        for number in range(120):
            with trio.move_on_after(times.uniform(0, 0.003)):
                kwargs = {"value": number, "delay_s": 0.001}
                assert await worker.call(f("echo"), kwargs) == number
                values += 1
            assert worker.state is WorkerState.IDLE
        assert await worker.call(f("echo"), {"value": "well"}) == "well"
        assert worker.generation == 1
        assert 10 < values < 110

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
            with trio.move_on_after(0.01):
                await worker.call(f("count"))
        assert values == ["slept"]
        assert await worker.call(f("count")) == 1

    async def test_cancelled_while_it_starts_no_process_is_left(self, orphans_are_ours):
        """A call that is cancelled before the process is ready ends it; the next starts another."""
        async with PythonWorker().open() as worker:
            with trio.move_on_after(0.01):
                await worker.call(f("count"))
            assert (worker.state, worker.pid) == (WorkerState.DEAD, None)
            report = await worker.run(f("count"))
            assert (report.value, report.generation, report.state_lost) == (1, 1, False)

    async def test_a_function_inside_the_c_librarys_system_is_interrupted(
        self, cut, worker, tmp_path
    ):
        """system(3) ignores SIGINT, and its command is ended; the signal is sent again after it."""
        await cut(worker, "c_system", tmp_path / "up")
        assert (await worker.call(f("count")), worker.generation) == (1, 1)

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
            assert worker.generation == 1
        assert not any(map(is_there, (deaf, polite, helper)))


class TestReplacement:
    """The last resort."""

    @pytest.mark.parametrize(
        ("name", "ended_by"),
        [("deaf", "SIGTERM"), ("native", "SIGTERM"), ("deaf_to_both", "SIGKILL")],
    )
    async def test_a_deaf_worker_is_replaced_and_says_so(
        self, cut, tmp_path, is_there, name, ended_by
    ):
        """It has the time of SIGINT, then it is ended; generation rises, the next call is told."""
        async with PythonWorker("w", ladder=FAST).open() as worker:
            assert await worker.call(f("count")) == 1
            pid = worker.pid
            assert pid is not None
            with capture_logs() as logs:
                await cut(worker, name, tmp_path / "up")
            assert not is_there(pid)
            assert (worker.state, worker.pid) == (WorkerState.DEAD, None)
            (line,) = [line for line in logs if line["event"] == "worker_ended"]
            assert line["log_level"] == "warning"
            assert (line["why"], line["ended_by"]) == ("deaf", ended_by)
            assert (line["generation"], line["state_lost"]) == (1, True)
            report = await worker.run(f("count"))
            assert (report.value, report.generation, report.state_lost) == (1, 2, True)

    async def test_force_kills_at_once(self, tmp_path, is_there):
        """With force asked for, a deaf function has no time."""
        async with PythonWorker(ladder=PATIENT).open() as worker:
            began = time.monotonic()
            with trio.move_on_after(0.5):
                await worker.call(
                    f("deaf_to_both"), {"path": str(tmp_path / "up")}, is_forced=lambda: True
                )
            assert time.monotonic() - began < 10
            assert worker.state is WorkerState.DEAD

    async def test_what_a_function_does_to_sigint_lasts_as_long_as_its_call(
        self, cut, worker, tmp_path
    ):
        """A function that ignores SIGINT and returns leaves a worker that hears it."""
        await worker.call(f("ignore_sigint"))
        await cut(worker, "doze", tmp_path / "up")
        assert worker.generation == 1

    async def test_closing_while_a_call_runs_ends_it_by_the_rule(
        self, tmp_path, is_there, wait_until
    ):
        """A call that is cancelled with the worker is drained before the process is ended."""
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
    from nodes.tools._processes import PythonWorker

    async def main():
        async with PythonWorker().open() as worker:
            point = await worker.call(double, {"point": Point(21)})
            print("point", point["x"], point["is_point"], worker.pid, flush=True)
            await worker.call(native)

    trio.run(main)
"""


async def test_a_script_has_a_worker_that_knows_it_and_dies_with_it(
    tmp_path: Path, wait_until, state_of
):
    """The main script's own functions and classes are found; once it is killed the worker ends.

    What is under its ``__main__`` is not run again, and native code that holds the interpreter
    does not save the worker.
    """
    path = tmp_path / "app.py"
    path.write_text(SCRIPT)
    script = subprocess.Popen(  # noqa: ASYNC220 - it is the test's own
        [sys.executable, str(path)],
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
