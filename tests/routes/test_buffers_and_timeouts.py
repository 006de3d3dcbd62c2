"""Buffers let stages run ahead, bounded; timeouts bound each value."""

from typing import Literal

import pytest
import trio

from bargein.routes import Event, StageTimeoutError, open_router
from tests.routes.stages import Go, Hold, Out, out, run_through, values


class Free(Event):
    type: Literal["pl.free"] = "pl.free"


async def produce(message):
    for n in range(4):
        await trio.sleep(1)
        yield n


async def consume(value):
    await trio.sleep(2)
    return value


async def test_without_a_buffer_stages_take_turns(autojump_clock):
    """Stages of one run work one after the other: the times add up."""
    got, _ = await run_through(lambda r: r.stream(produce).map(consume).map(out).broadcast())
    assert got == [(3, 0), (6, 1), (9, 2), (12, 3)]


async def test_a_buffer_lets_both_sides_work_at_once(autojump_clock):
    """With a buffer the slower side alone sets the pace, to the millisecond."""
    got, _ = await run_through(
        lambda r: r.stream(produce).buffer(1).map(consume).map(out).broadcast()
    )
    assert got == [(3, 0), (5, 1), (7, 2), (9, 3)]


@pytest.mark.parametrize("size", [1, 3])
async def test_a_buffer_is_bounded(size, autojump_clock):
    """The stages before a buffer are ahead by at most its size."""
    made = []

    def flood(message):
        for n in range(20):
            made.append(n)
            yield n

    async def slow(value):
        if value == 0:
            await trio.sleep(50)
        return value

    async def look():
        await trio.sleep(25)
        assert len(made) == 1 + size  # one in the hands of the slow stage

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        got, _ = await run_through(
            lambda r: r.stream(flood).buffer(size).map(slow).map(out).broadcast()
        )
    assert values(got) == list(range(20))


async def test_a_chain_may_have_several_buffers(autojump_clock):
    """Each buffer adds a task; values keep their order."""
    got, _ = await run_through(
        lambda r: (
            r.stream(produce).buffer(2).map(consume).buffer(2).map(consume).map(out).broadcast()
        )
    )
    assert got == [(5, 0), (7, 1), (9, 2), (11, 3)]


async def test_what_follows_a_buffer_may_end_first(autojump_clock):
    """When the stages after a buffer want no more, those before it are closed."""
    ends = []

    async def endless(message):
        try:
            while True:
                yield 1
        finally:
            ends.append(1)

    async def first(items):
        async for item in items:
            yield item
            return

    got, failures = await run_through(
        lambda r: r.stream(endless).buffer(1).through(first).map(out).broadcast()
    )
    assert (values(got), ends, failures) == ([1], [1], [])


async def test_timeout_bounds_each_value(autojump_clock):
    """A value that takes too long fails the run with StageTimeoutError; earlier ones stay good."""

    async def slower(message):
        for n in range(5):
            await trio.sleep(n)
            yield n

    got, failures = await run_through(lambda r: r.stream(slower).timeout(2.5).map(out).broadcast())
    assert got == [(0, 0), (1, 1), (3, 2)]
    ((stage, error),) = failures
    assert stage == ".timeout(2.5)"
    assert isinstance(error, StageTimeoutError)
    assert isinstance(error, TimeoutError)
    assert str(error) == (
        "no value within 2.5 s before .timeout() in "
        "bridge.on(Go).stream(slower).timeout(2.5).map(out).broadcast()"
    )


async def test_timeout_counts_only_the_stages_before_it(autojump_clock):
    """Slow stages after a timeout are not its concern."""
    got, failures = await run_through(
        lambda r: r.stream(produce).timeout(1.5).map(consume).map(out).broadcast()
    )
    assert not failures
    assert len(got) == 4


@pytest.mark.parametrize("begun", [False, True], ids=["before it counts", "while it counts"])
async def test_a_timeout_stands_still_while_a_run_is_paused(begun, autojump_clock):
    """Time in which a run is paused does not count, wherever the pause falls."""
    got, failures = [], []

    async def after_three(message):
        await trio.sleep(3)
        yield 1
        await trio.sleep(30)
        yield 2

    async def pass_on(value):
        return value

    async with open_router() as router:
        router.add_sink(lambda m: got.append(trio.current_time()), Out)
        router.listen(failed=lambda run, route, stage, error: failures.append(trio.current_time()))
        (
            router.on(Go)
            .pause_on(Hold)
            .resume_on(Free)
            .stream(after_three)
            .map(out)
            .broadcast()
            .map(pass_on)
            .timeout(3.5)
        )
        router.publish(Go())
        if begun:
            await trio.sleep(1)
        router.publish(Hold())
        await trio.sleep(20)
        router.publish(Free())
        await trio.sleep(100)
    # The value was ready at 3 s and held until the run was let go on; then 3.5 s for the next.
    freed_s = 21 if begun else 20
    assert got == [freed_s]
    assert failures == [freed_s + 3.5]


async def test_a_timeout_that_begins_in_a_pause_stands_too(autojump_clock):
    """Behind a buffer the stages before go on in a pause; their time does not count either."""
    failures = []

    async def one_then_long(message):
        yield 1
        await trio.sleep(30)
        yield 2

    async with open_router() as router:
        router.listen(failed=lambda run, route, stage, error: failures.append(trio.current_time()))
        (
            router.on(Go)
            .pause_on(Hold)
            .resume_on(Free)
            .stream(one_then_long)
            .timeout(2)
            .buffer(3)
            .map(out)
            .broadcast()
        )
        router.publish(Go())
        router.publish(Hold())
        await trio.sleep(20)
        assert failures == []
        router.publish(Free())
        await trio.sleep(20)
    assert failures == [22]
