"""The seed of a test: the same one has the same schedule, another one another."""

from __future__ import annotations

import random
from functools import partial

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from trio._core import _run as scheduler

from bargein import ChatNode
from bargein.testing import ScriptedModel, open_agent, open_call


class Schedule(trio.abc.Instrument):
    """Writes down each step of the scheduler inside of a call."""

    def __init__(self):
        self.steps = []

    def after_task_step(self, task):
        self.steps.append((trio.current_time(), task.name))


async def answer(call):
    for number in range(8):
        call.nursery.start_soon(rolls, number, name=f"task {number}")
    call.say("Hello")


async def rolls(number):
    for _ in range(5):
        await trio.sleep(random.random() * (number < 4))


async def call_with(seed, drawn=None):
    schedule = Schedule()
    async with open_call(answer, seed=seed) as caller:
        start_s = trio.current_time() - caller.now_s
        trio.lowlevel.add_instrument(schedule)
        await caller.quiet()
        await caller.at(10)
        trio.lowlevel.remove_instrument(schedule)
        if drawn is not None:
            drawn.append(caller.seed)
    return [(round(at_s - start_s, 6), name) for at_s, name in schedule.steps]


async def agent_with(seed):
    schedule = Schedule()
    async with open_agent(ChatNode(ScriptedModel(then="Hi.")), seed=seed) as handle:
        trio.lowlevel.add_instrument(schedule)
        await answer(handle.call)
        handle.send_input("hello")
        await trio.sleep(10)
        trio.lowlevel.remove_instrument(schedule)
    return [name for _, name in schedule.steps]


def run(fn, seed):
    return trio.run(fn, seed, clock=trio.testing.MockClock(autojump_threshold=0))


@pytest.mark.parametrize("fn", [call_with, agent_with])
def test_the_same_seed_has_the_same_schedule(fn):
    """Each step of each task comes in the same order, at the same time, run after run."""
    for seed in range(5):
        first = run(fn, seed)
        assert len(first) > 30
        assert run(fn, seed) == first


@pytest.mark.parametrize("fn", [call_with, agent_with])
def test_different_seeds_have_different_schedules(fn):
    """Of ten seeds no two have the same order: eight tasks have 40,320 for their first step."""
    assert len({tuple(run(fn, seed)) for seed in range(10)}) == 10


async def test_a_call_is_repeated_within_a_test(autojump_clock):
    """The second call of a run has the schedule of the first."""
    assert await call_with(7) == await call_with(7)


def test_a_call_without_a_seed_can_be_repeated():
    """It draws a seed, which has the same schedule when it is given."""
    seeds = []
    first = run(partial(call_with, drawn=seeds), None)
    [seed] = seeds
    assert run(call_with, seed) == first
    run(partial(call_with, drawn=seeds), None)
    assert seeds[-1] != seed


async def fail(**options):
    async with open_call(answer, **options):
        raise KeyError("the test")


async def test_all_is_put_back(autojump_clock):
    """After the call trio shuffles as before, and so do Python's dice."""
    random.seed(1)
    expected = [random.random() for _ in range(2)]
    random.seed(1)
    before, switch = random.random(), scheduler._ALLOW_DETERMINISTIC_SCHEDULING
    state = scheduler._r.getstate()
    async with open_call(answer, seed=3):
        assert scheduler._ALLOW_DETERMINISTIC_SCHEDULING
    assert [before, random.random()] == expected
    assert scheduler._ALLOW_DETERMINISTIC_SCHEDULING is switch
    assert scheduler._r.getstate() == state


async def test_calls_inside_of_another_share_its_order(autojump_clock):
    """The call that is opened first decides the order, and a second seed is refused."""
    async with open_call(answer, seed=1) as first, open_call(answer) as second:
        assert (first.seed, second.seed) == (1, None)
        with pytest.raises(ValueError, match="seed=2: another call is open"):
            await fail(seed=2)
    await call_with(2)


@pytest.mark.parametrize("seed", [-1, 1.5, "7", True])
async def test_a_seed_is_a_whole_number(seed):
    """Anything else is an error that shows what was given."""
    with pytest.raises(ValueError, match=f"seed= is a whole number from 0, or None, not {seed!r}"):
        await fail(seed=seed)


@given(st.booleans())
def test_hypothesis_keeps_its_own_order(example):
    """Inside of its tests a call without a seed leaves the order to Hypothesis."""
    assert example in (True, False)
    seeds = []
    run(partial(call_with, drawn=seeds), None)
    assert seeds == [None]
