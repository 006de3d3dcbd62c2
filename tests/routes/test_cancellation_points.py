"""One test for each await of the engine: cut there, then look at what is left."""

import math
from typing import Literal

import pytest
import trio

from bargein.routes import Event, InterruptToken, open_router
from tests.living import living_tasks


class Go(Event):
    type: Literal["cp.go"] = "cp.go"
    n: int = 0


class Stop(Event):
    type: Literal["cp.stop"] = "cp.stop"


class Hold(Event):
    type: Literal["cp.hold"] = "cp.hold"


class Chunk(Event):
    type: Literal["cp.chunk"] = "cp.chunk"
    n: int = 0


opened = []
"""What each node of these tests has opened and not yet closed."""


class Resource:
    """Something that must be closed, whatever happens."""

    def __enter__(self):
        opened.append(self)

    def __exit__(self, *_):
        opened.remove(self)


async def waits(message):
    with Resource():
        yield Chunk(n=message.event.n)
        await trio.sleep(100)
        yield Chunk(n=-1)


async def floods(message):
    with Resource():
        while True:
            yield Chunk(n=message.event.n)


def sync_floods(message):
    with Resource():
        while True:
            yield Chunk(n=message.event.n)


async def waits_first(message):
    with Resource():
        await trio.sleep(100)
    yield Chunk(n=message.event.n)


async def coroutine(value):
    with Resource():
        await trio.sleep(100)
    return value


async def quick(message):
    with Resource():
        yield Chunk(n=message.event.n)
        yield Chunk(n=message.event.n)


async def never(value):
    with Resource():
        await trio.sleep(100)
    return False


async def slow_through(items):
    with Resource():
        async for item in items:
            yield item
            await trio.sleep(100)


async def slowly_closed(message):
    try:
        with Resource():
            while True:
                yield Chunk(n=message.event.n)
    finally:
        with trio.move_on_after(0.5, shield=True):
            await trio.sleep(0.2)


async def slow_sink(message):
    await trio.sleep(1000)


POINTS = {
    "not begun yet": lambda r: r.stream(waits).broadcast(),
    "in the node, before its first value": lambda r: r.stream(waits_first).broadcast(),
    "in the node, between two values": lambda r: r.stream(waits).broadcast(),
    "in a flood, at the checkpoint of the run": lambda r: r.stream(floods).broadcast(),
    "in a sync flood": lambda r: r.stream(sync_floods).broadcast(),
    "in an async map alone": lambda r: r.map(coroutine),
    "in an async map after a stream": lambda r: r.stream(quick).map(coroutine).broadcast(),
    "in an async map between": lambda r: r.stream(quick).map(coroutine).map(coroutine),
    "in an async filter": lambda r: r.stream(quick).filter(never).broadcast(),
    "in an async filter of a flood": lambda r: r.stream(floods).filter(never).map(coroutine),
    "in what a lambda gave first": lambda r: r.map(lambda m: coroutine(m)).stream(quick),
    "in what a lambda gave last": lambda r: r.stream(quick).map(lambda v: coroutine(v)),
    "in a generator that a lambda gave": lambda r: r.map(lambda m: floods(m)).broadcast(),
    "in lambdas one after the other": (
        lambda r: r.map(lambda m: floods(m)).map(lambda v: coroutine(v)).broadcast()
    ),
    "in a stream behind a lambda": lambda r: r.map(lambda m: same(m)).stream(waits).broadcast(),
    "in a through": lambda r: r.stream(quick).through(slow_through).broadcast(),
    "in what a through reads": lambda r: r.stream(waits).through(lambda items: items).broadcast(),
    "in a timeout": lambda r: r.stream(waits).timeout(50).broadcast(),
    "in the node before a buffer": lambda r: r.stream(waits).buffer(2).broadcast(),
    "before a full buffer": lambda r: r.stream(floods).buffer(2).map(coroutine),
    "behind an empty buffer": lambda r: r.stream(waits_first).buffer(2).map(coroutine),
    "behind a broadcast between": lambda r: r.stream(floods).broadcast().map(coroutine),
    "before a clean-up that waits": lambda r: r.stream(slowly_closed).broadcast(),
}


async def same(value):
    return value


@pytest.fixture(autouse=True)
def nothing_is_left_open():
    """Every node has closed what it opened when a test ends."""
    opened.clear()
    yield
    assert opened == []


async def cut_and_look(router, route, until_s, act=lambda: None):
    """Trigger, wait, cut; then check state, leftovers, and that the next trigger works."""
    got, told, ends = [], [], []
    route = route(router.on(Go).interrupt_on(Stop, handler=lambda m, i: told.append(i.run)))
    router.add_sink(lambda m: got.append((trio.current_time(), m.event.n)), Chunk)
    router.listen(run_ended=lambda run: ends.append((run.id, run.outcome)))
    runtime = router.runtime(route)
    router.call_at("the task of the timers", math.inf, print)  # it begins with the first of them
    tasks = living_tasks()
    for turn in (1, 2):
        router.publish(Go(n=turn))
        (run,) = runtime.runs
        if until_s is not None:
            for _ in range(10):
                await trio.lowlevel.checkpoint()
            act()
            await trio.testing.wait_all_tasks_blocked() if until_s else None
        cut_s = trio.current_time()
        router.publish(Stop())
        before = len(got)
        assert run.is_cut
        await run.finished()
        assert trio.current_time() - cut_s <= 1  # bounded
        for _ in range(5):
            await trio.lowlevel.checkpoint()
        assert run.outcome == "interrupted"
        assert len(got) == before  # silence
        assert told == [n + 1 for n in range(turn)]  # once per run, in order
        assert ends == [(n + 1, "interrupted") for n in range(turn)]
        assert runtime.runs == ()
        assert living_tasks() == tasks
        assert opened == []
    assert runtime.statistics.cut == 2
    assert runtime.statistics.failed == runtime.statistics.abandoned == 0


@pytest.mark.parametrize("point", POINTS)
async def test_cut_at_each_place_where_a_run_waits(point, autojump_clock):
    """Wherever a run waits, it is cut there, leaves nothing behind, and the next one works."""
    async with open_router() as router:
        await cut_and_look(router, POINTS[point], None if point == "not begun yet" else 0)


async def test_cut_at_the_gate(autojump_clock):
    """A paused run is cut at its gate."""
    async with open_router() as router:
        await cut_and_look(
            router,
            lambda r: r.pause_on(Hold).stream(floods).broadcast(),
            1,
            lambda: router.publish(Hold()),
        )


async def test_cut_at_the_gate_of_a_lambda(autojump_clock):
    """A paused run is cut at the gate before a value that a lambda's generator gave."""
    async with open_router() as router:
        await cut_and_look(
            router,
            lambda r: r.pause_on(Hold).map(lambda m: floods(m)).broadcast(),
            1,
            lambda: router.publish(Hold()),
        )


@pytest.mark.parametrize("where", ["last", "between", "lambda"])
async def test_cut_while_a_sink_is_full(where, autojump_clock):
    """A run that waits for room in a sink is cut there."""
    builds = {
        "last": lambda r: r.stream(floods).broadcast(),
        "between": lambda r: r.stream(floods).broadcast().map(same),
        "lambda": lambda r: r.map(lambda m: floods(m)).broadcast(),
    }
    async with open_router() as router:
        router.add_sink(slow_sink, Chunk, limit=2)
        await cut_and_look(router, builds[where], 1)


async def test_stop_at_each_place(autojump_clock):
    """A run that is stopped ends as completed wherever it waits, and what it gave stays good."""
    for point, build in POINTS.items():
        async with open_router() as router:
            ends, got = [], []
            router.listen(run_ended=lambda run, ends=ends: ends.append(run.outcome))
            router.add_sink(got.append, Chunk)
            runtime = router.runtime(build(router.on(Go)))
            router.publish(Go())
            (run,) = runtime.runs
            for _ in range(10):
                await trio.lowlevel.checkpoint()
            run.stop()
            before = len(got)
            await run.finished()
            assert ends == ["completed"], point
            assert len(got) == before
            assert not any(message.is_stale for message in got)


async def test_close_at_each_place(autojump_clock):
    """Closing the router ends a run wherever it waits, within bounds, as shutdown."""
    for build in POINTS.values():
        ends = []
        async with open_router() as router:
            router.listen(run_ended=lambda run, ends=ends: ends.append(run.outcome))
            build(router.on(Go))
            router.publish(Go())
            for _ in range(10):
                await trio.lowlevel.checkpoint()
            start_s = trio.current_time()
        assert ends == ["shutdown"]
        assert trio.current_time() - start_s <= 1


async def test_a_flag_stops_what_a_flood_published_in_the_same_step(autojump_clock):
    """A flood between stages that cuts its own run, without waiting, goes no further."""
    got = []

    async def cuts_itself(message):
        for n in range(3):
            if n == 1:
                router.publish(Stop())
            yield Chunk(n=n)

    for build in (
        lambda r: r.stream(cuts_itself).broadcast().map(same),
        lambda r: r.map(lambda m: cuts_itself(m)).broadcast(),
        lambda r: r.stream(cuts_itself).map(lambda v: [v]).map(lambda v: pair(v)).broadcast(),
    ):
        got.clear()
        async with open_router() as router:
            route = build(router.on(Go).interrupt_on(Stop))
            router.add_sink(lambda m: got.append(m.event.n), Chunk)
            router.publish(Go())
            await trio.sleep(1)
            assert set(got) <= {0}
            assert router.runtime(route).statistics.cut == 1


async def pair(values):
    yield values[0]


async def test_a_failure_behind_a_lambda_is_blamed_on_its_stage(autojump_clock):
    """A sync stage that fails on what a lambda's coroutine gave is named itself."""
    stages = []
    async with open_router() as router:
        router.listen(failed=lambda run, route, stage, error: stages.append(stage))
        router.on(Go).map(lambda m: same(m)).filter(fails)
        router.publish(Go())
        await trio.sleep(1)
    assert stages == [".filter(fails)"]


def fails(value):
    raise ValueError("fails")


async def test_a_buffer_whose_reader_leaves(autojump_clock):
    """Values on their way into a buffer that nobody reads any more are let go."""

    async def first(items):
        async for item in items:
            yield item
            return

    async def lingers(items):
        async for item in items:
            yield item
        await trio.sleep(5)

    outcomes = []
    async with open_router() as router:
        router.listen(run_ended=lambda run: outcomes.append(run.outcome))
        router.on(Go).stream(floods).buffer(1).through(first).through(lingers).broadcast()
        router.publish(Go())
        await trio.sleep(10)
    assert outcomes == ["completed"]


async def test_cancelling_who_waits_for_a_run(autojump_clock):
    """Cancelling `finished()` does nothing to the run."""
    async with open_router() as router:
        route = router.on(Go).stream(waits)
        router.publish(Go())
        (run,) = router.runtime(route).runs
        with trio.move_on_after(1) as scope:
            await run.finished()
        assert scope.cancelled_caught
        assert run.is_running
        await run.finished()
        assert trio.current_time() == 100


async def test_cancelling_who_waits_for_a_token():
    """Cancelling `cancelled()` does nothing to the token."""
    token = InterruptToken()
    with trio.CancelScope() as scope:
        scope.cancel()
        await token.cancelled()
    assert not token.is_requested


async def test_closing_while_a_sink_works(autojump_clock):
    """A sink in the middle of its work is ended with the router."""
    async with open_router() as router:
        router.add_sink(slow_sink)
        router.publish(Go())
        await trio.sleep(1)
    assert trio.current_time() == 1
