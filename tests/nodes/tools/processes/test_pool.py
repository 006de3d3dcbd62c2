"""Workers that calls share."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import trio

from nodes.tools._processes import Ladder, WorkerError, WorkerPool

pytestmark = pytest.mark.usefixtures("functions")


def f(name: str) -> str:
    return f"child_functions:{name}"


async def test_processes_are_started_when_they_are_needed_and_used_again():
    """One call after the other needs one process; two at once need two."""
    async with WorkerPool(3).open() as pool:
        first = [await pool.call(f("pid")) for _ in range(3)]
        assert len(set(first)) == 1
        assert [worker.generation for worker in pool.workers] == [1, 0, 0]
        pids: list[int] = []

        async def call(name: str, **kwargs: object) -> None:
            pids.append(await pool.call(f(name), kwargs))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(call, "echo", value=0, delay_s=0.1))
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(call, "pid")
        assert sorted(worker.generation for worker in pool.workers) == [0, 1, 1]
        assert pids[-1] != first[0] or pids[0] != first[0]


async def test_no_more_run_than_there_are_places():
    """The third of three calls in a pool of two waits; each has its own value."""
    ended: list[int] = []
    async with WorkerPool(2).open() as pool:
        for worker in pool.workers:  # both are up, so that no start is measured
            await worker.call(f("count"))

        async def call(number: int) -> None:
            ended.append((await pool.run(f("echo"), {"value": number, "delay_s": 0.05})).value)

        async with trio.open_nursery() as nursery:
            for number in range(3):
                nursery.start_soon(call, number)
                await trio.testing.wait_all_tasks_blocked()
    assert sorted(ended) == [0, 1, 2]
    assert ended[-1] == 2


async def test_a_cancelled_call_gives_its_worker_back(tmp_path: Path, wait_until):
    """After a cancel, running or waiting, the pool has all its places."""
    async with WorkerPool(1, ladder=Ladder(int_s=20)).open() as pool:
        up = tmp_path / "up"
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                for _ in range(2):
                    nursery.start_soon(pool.call, f("doze"), {"path": str(up)})
                await wait_until(up.exists)
                scope.cancel()
        report = await pool.run(f("count"))
        assert (report.value, report.generation) == (1, 1)


async def test_it_can_be_served_by_a_task():
    """nursery.start(pool.serve) opens it; cancelling closes it."""
    pool = WorkerPool(1)
    async with trio.open_nursery() as nursery:
        assert await nursery.start(pool.serve) is pool
        assert await pool.call(f("count")) == 1
        nursery.cancel_scope.cancel()
    with pytest.raises(WorkerError, match="not open"):
        await pool.call(f("count"))


async def test_mistakes_are_told():
    """A pool without workers, and one opened twice, are errors."""
    with pytest.raises(ValueError, match="size=0"):
        WorkerPool(0)
    pool = WorkerPool()
    async with pool.open():
        with pytest.raises(WorkerError, match="open already"):
            async with pool.open():
                raise AssertionError
