"""Functions of a router that are called at their time."""

from __future__ import annotations

import math
import sys
from contextvars import ContextVar
from functools import partial

import pytest
import trio

from bargein.routes._alarms import Alarms

speaker: ContextVar[str] = ContextVar("speaker", default="nobody")


class Steps(trio.abc.Instrument):
    """Counts how often a task runs."""

    def __init__(self) -> None:
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += task.name == "alarm clock of all routers"


@pytest.fixture
async def alarms(nursery):
    return Alarms(nursery, lambda fn: fn())


async def test_each_is_called_once_at_its_time(autojump_clock, alarms):
    """In the order of the times, whatever the order in which they were put."""
    called = []
    for at_s in (3.0, 1.0, 2.5):
        alarms.put(at_s, at_s, lambda at_s=at_s: called.append((at_s, trio.current_time())))
    await trio.sleep(10)
    assert called == [(1, 1), (2.5, 2.5), (3, 3)]


async def test_a_second_one_for_a_key_takes_the_place_of_the_first(autojump_clock, alarms):
    """Earlier or later than it; and one that was taken away is not called."""
    called = []
    alarms.put("a", 1, lambda: called.append("first"))
    alarms.put("a", 4, lambda: called.append(("later", trio.current_time())))
    alarms.put("b", 9, lambda: called.append("first"))
    alarms.put("b", 2, lambda: called.append(("earlier", trio.current_time())))
    alarms.put("c", 3, lambda: called.append("taken away"))
    alarms.take_away("c")
    await trio.sleep(10)
    assert called == [("earlier", 2), ("later", 4)]


async def test_one_that_is_put_off_wakes_nobody(autojump_clock, alarms):
    """The task of the clock runs when something is to be called, and not at the old time."""
    alarms.put("a", 1, lambda: None)
    await trio.testing.wait_all_tasks_blocked()
    steps = Steps()
    trio.lowlevel.add_instrument(steps)
    for tenth in range(100):
        alarms.put("a", 1 + tenth / 10, lambda: None)
        await trio.sleep(0.1)
    assert steps.count == 0
    await trio.sleep(2)
    trio.lowlevel.remove_instrument(steps)
    assert steps.count == 1


async def test_one_may_put_the_next(autojump_clock, alarms):
    """Its own next time, and one for others, also for now."""
    called = []

    def tick() -> None:
        called.append(trio.current_time())
        alarms.put("tick", trio.current_time() + 1, tick)
        alarms.put("other", trio.current_time(), lambda: called.append("other"))

    alarms.put("tick", 1, tick)
    await trio.sleep(2.5)
    alarms.put("tick", math.inf, tick)
    await trio.sleep(10)
    assert called == [1, "other", 2, "other"]


async def test_one_may_put_off_another_that_is_due(autojump_clock, alarms):
    """Of two for the same time the first puts off the second, which comes at its new time only."""
    called = []
    alarms.put("a", 1, lambda: alarms.put("b", 5, lambda: called.append(trio.current_time())))
    alarms.put("b", 1, lambda: called.append("old"))
    await trio.sleep(10)
    assert called == [5]


async def test_they_know_nothing_of_who_needs_one_first(autojump_clock, nursery, alarms):
    """They are called in the context of the task that owns them, whoever put the first."""
    called = []

    async def run() -> None:
        speaker.set("a run")
        alarms.put("a", 1, lambda: called.append(speaker.get()))

    nursery.start_soon(run)
    await trio.sleep(2)
    assert called == ["nobody"]


async def test_what_one_sets_in_its_context_stays_there(autojump_clock, alarms):
    """Neither the next alarm nor the task that owns them sees it."""
    called = []
    alarms.put("a", 1, lambda: speaker.set("an alarm"))
    alarms.put("b", 2, lambda: called.append(speaker.get()))
    await trio.sleep(3)
    assert called == ["nobody"]
    assert speaker.get() == "nobody"


async def test_nothing_is_called_once_they_are_closed(autojump_clock, alarms):
    """Neither what was put before nor what is put after, and others are woken as ever."""
    called = []
    others = Alarms(alarms._nursery, lambda fn: fn())
    alarms.put("a", 1, lambda: called.append("before"))
    others.put("a", 2, lambda: called.append("another's"))
    alarms.close()
    alarms.put("b", 1, lambda: called.append("after"))
    await trio.sleep(3)
    assert called == ["another's"]


async def test_what_ends_everything_ends_what_owns_them(autojump_clock):
    """SystemExit leaves the nursery of the alarms, and those of others go on."""
    called = []

    async def one_exits() -> None:
        async with trio.open_nursery() as nursery:
            Alarms(nursery, lambda fn: fn()).put("a", 1, partial(sys.exit, 3))
            await trio.sleep_forever()

    async with trio.open_nursery() as outside:
        Alarms(outside, lambda fn: fn()).put("a", 2, lambda: called.append("another's"))
        with pytest.raises(BaseExceptionGroup) as raised:
            await one_exits()
        assert [type(error) for error in raised.value.exceptions] == [SystemExit]
        await trio.sleep(5)
    assert called == ["another's"]
