"""Functions of a router that are called at their time."""

from __future__ import annotations

import math
import random
import tracemalloc
from contextlib import AsyncExitStack
from contextvars import ContextVar
from functools import partial

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from bargein.routes import open_router

speaker: ContextVar[str] = ContextVar("speaker", default="nobody")


class Steps(trio.abc.Instrument):
    """Counts how often a task runs."""

    def __init__(self) -> None:
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += task.name == "timers of all routers"


@pytest.fixture
async def router():
    async with open_router() as router:
        yield router


async def test_each_is_called_once_at_its_time(autojump_clock, router):
    """In the order of the times, whatever the order in which they were put."""
    called = []
    for at_s in (3.0, 1.0, 2.5):
        router.call_at(at_s, at_s, lambda at_s=at_s: called.append((at_s, trio.current_time())))
    await trio.sleep(10)
    assert called == [(1, 1), (2.5, 2.5), (3, 3)]


async def test_a_second_one_for_a_key_takes_the_place_of_the_first(autojump_clock, router):
    """Earlier or later than it; and one that was taken away is not called."""
    called = []
    router.call_at("a", 1, lambda: called.append("first"))
    router.call_at("a", 4, lambda: called.append(("later", trio.current_time())))
    router.call_at("b", 9, lambda: called.append("first"))
    router.call_at("b", 2, lambda: called.append(("earlier", trio.current_time())))
    router.call_at("c", 3, lambda: called.append("taken away"))
    router.forget("c")
    await trio.sleep(10)
    assert called == [("earlier", 2), ("later", 4)]


async def test_one_that_is_put_off_wakes_nobody(autojump_clock, router):
    """The task of the clock runs when something is to be called, and not at the old time."""
    router.call_at("a", 1, lambda: None)
    await trio.testing.wait_all_tasks_blocked()
    steps = Steps()
    trio.lowlevel.add_instrument(steps)
    for tenth in range(100):
        router.call_at("a", 1 + tenth / 10, lambda: None)
        await trio.sleep(0.1)
    assert steps.count == 0
    await trio.sleep(2)
    trio.lowlevel.remove_instrument(steps)
    assert steps.count == 1


async def test_one_may_put_the_next(autojump_clock, router):
    """Its own next time, and one for others, also for now."""
    called = []

    def tick() -> None:
        called.append(trio.current_time())
        router.call_at("tick", trio.current_time() + 1, tick)
        router.call_at("other", trio.current_time(), lambda: called.append("other"))

    router.call_at("tick", 1, tick)
    await trio.sleep(2.5)
    router.call_at("tick", math.inf, tick)
    await trio.sleep(10)
    assert called == [1, "other", 2, "other"]


async def test_one_may_put_off_another_that_is_due(autojump_clock, router):
    """Of two for the same time the first puts off the second, which comes at its new time only."""
    called = []
    router.call_at(
        "a", 1, lambda: router.call_at("b", 5, lambda: called.append(trio.current_time()))
    )
    router.call_at("b", 1, lambda: called.append("old"))
    await trio.sleep(10)
    assert called == [5]


async def test_they_know_nothing_of_who_needs_one_first(autojump_clock, nursery, router):
    """They are called in the context of the task that owns them, whoever put the first."""
    called = []

    async def run() -> None:
        speaker.set("a run")
        router.call_at("a", 1, lambda: called.append(speaker.get()))

    nursery.start_soon(run)
    await trio.sleep(2)
    assert called == ["nobody"]


async def test_what_one_sets_in_its_context_stays_there(autojump_clock, router):
    """Neither the next timer nor the task that owns them sees it."""
    called = []
    router.call_at("a", 1, lambda: speaker.set("a timer"))
    router.call_at("b", 2, lambda: called.append(speaker.get()))
    await trio.sleep(3)
    assert called == ["nobody"]
    assert speaker.get() == "nobody"


async def test_nothing_is_called_once_a_router_is_closed(autojump_clock):
    """Neither what was set before nor what is set after, and others' are called as ever."""
    called = []
    async with open_router() as others:
        async with open_router() as router:
            router.call_at("a", 1, lambda: called.append("before"))
            others.call_at("a", 2, lambda: called.append("another's"))
        router.call_at("b", 1, lambda: called.append("after"))
        await trio.sleep(3)
    assert called == ["another's"]


@pytest.mark.parametrize("error", [KeyError("mine"), SystemExit(3)])
async def test_what_one_raises_is_logged(autojump_clock, router, error):
    """The other timers, of this router and of others, are called as ever."""
    called = []

    def fail() -> None:
        raise error

    async with open_router() as other:
        router.call_at("a", 1, fail)
        router.call_at("b", 1, lambda: called.append("b"))
        other.call_at("a", 2, lambda: called.append("another's"))
        with capture_logs() as logs:
            await trio.sleep(5)
    assert called == ["b", "another's"]
    assert [line["log_level"] for line in logs] == ["error"]


async def test_one_that_is_put_off_all_the_time_leaves_little(autojump_clock, router):
    """Its outdated times are cleared away, and it is called at the last of them."""
    called = []
    await trio.testing.wait_all_tasks_blocked()  # until the clock has begun
    tracemalloc.start()
    try:
        for n in range(20_000):
            router.call_at("a", 10 + n / 1000, lambda: called.append(trio.current_time()))
            if n % 100 == 0:
                await trio.lowlevel.checkpoint()  # where trio clears its own outdated times away
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 500_000
    await trio.sleep(100)
    assert called == [10 + 19_999 / 1000]


async def test_random_times_are_kept_to(autojump_clock):
    """Fifty timers of five routers, set two thousand times, come at their last times, in order."""
    rng, called, due = random.Random(7), [], {}
    async with AsyncExitStack() as stack:
        routers = [await stack.enter_async_context(open_router()) for _ in range(5)]
        for _ in range(2000):
            number, key = rng.randrange(5), rng.randrange(10)
            at_s = rng.choice([math.inf, *(float(n) for n in range(1, 40))])
            name = (number, key)
            if at_s == math.inf:
                routers[number].forget(key)
                due.pop(name, None)
            else:
                tell = partial(lambda name: called.append((name, trio.current_time())), name)
                routers[number].call_at(key, at_s, tell)
                due[name] = at_s
        await trio.sleep(100)
    assert dict(called) == due
    assert [at_s for _, at_s in called] == sorted(due.values())
