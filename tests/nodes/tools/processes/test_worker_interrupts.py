"""Worker processes, for real: what interrupts them, what does not, and what replaces them."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from contextlib import suppress

import pytest
import trio
from structlog.testing import capture_logs

from bargein.processes import (
    PythonWorker,
    WorkerCall,
    WorkerDiedError,
)
from bargein.tools import SignalLadder

from .child import FAST, PATIENT, f

pytestmark = [pytest.mark.usefixtures("functions"), pytest.mark.proof]


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
        async with PythonWorker(
            ladder=SignalLadder(int_s=20, term_s=0.3, kill_s=2)
        ).open() as worker:
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
        """A call that is cancelled with the worker delays its end no longer than the ladder."""
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
