"""What becomes of a trigger that comes while a run is active."""

import pytest
import structlog
import trio

from bargein.routes import open_router

from .events import Chunk, Go, Stop, chunks_of, later, second, verdicts


async def test_queue_keeps_the_order(autojump_clock):
    """By default a trigger waits for the run before it, in order."""
    async with open_router() as router:
        route = router.on(Go).stream(second).broadcast()
        got = chunks_of(router)
        for n in range(3):
            router.publish(Go(n=n))
        assert len(router.runtime(route).runs) == 1
        await trio.sleep(10)
        assert got == [(1, 0), (2, 1), (3, 2)]
        assert verdicts(router, route) == ["matched", "queued", "queued", "matched", "matched"]


async def test_the_queue_is_bounded(autojump_clock):
    """One trigger too many is dropped, counted and logged."""
    async with open_router() as router:
        route = router.on(Go, limit=2).stream(second).broadcast()
        got = chunks_of(router)
        with structlog.testing.capture_logs() as logs:
            for n in range(5):
                router.publish(Go(n=n))
        await trio.sleep(10)
        assert [n for _, n in got] == [0, 1, 2]
        assert router.runtime(route).statistics.dropped == 2
        assert [line["event"] for line in logs] == ["trigger_dropped"] * 2


async def test_restart_takes_the_place_of_the_running_one(autojump_clock):
    """A trigger cuts the running one, whose handler is told, and begins after it has unwound."""
    told = []
    async with open_router() as router:
        route = (
            router.on(Go, overlap="restart")
            .interrupt_on(Stop, handler=lambda m, i: told.append((m.event.n, i.reason)))
            .stream(second)
            .broadcast()
        )
        got = chunks_of(router)
        for n in range(4):
            router.publish(Go(n=n))
            await trio.sleep(0.5 if n < 1 else 0)
        await trio.sleep(5)
        assert got == [(1.5, 3)]
        statistics = router.runtime(route).statistics
        assert statistics.started == 1 + statistics.cut
        assert statistics.cut + statistics.dropped == 3
        assert told[0] == (1, "overlap='restart'")
        assert len(told) == statistics.cut


async def test_restart_waits_for_a_protected_run(autojump_clock):
    """What must be heard to its end is not cut by a new trigger; that one comes after it."""
    async with open_router() as router:
        route = router.on(Go, overlap="restart").stream(second).broadcast()
        got = chunks_of(router)
        router.publish(Go(n=0))
        router.runtime(route).runs[0].protect()
        await trio.sleep(0.5)
        router.publish(Go(n=1))
        await trio.sleep(5)
        assert got == [(1, 0), (2, 1)]


async def test_drop_ignores_triggers_while_a_run_is_active(autojump_clock):
    """A trigger that comes too early is dropped and counted."""
    async with open_router() as router:
        route = router.on(Go, overlap="drop").stream(second).broadcast()
        got = chunks_of(router)
        router.publish(Go(n=0))
        router.publish(Go(n=1))
        await trio.sleep(2)
        router.publish(Go(n=2))
        await trio.sleep(2)
        assert got == [(1, 0), (3, 2)]
        assert router.runtime(route).statistics.dropped == 1
        assert verdicts(router, route) == ["matched", "dropped", "matched"]


@pytest.mark.parametrize(("limit", "times"), [(None, [1] * 5), (2, [1, 1, 2, 2, 3])])
async def test_concurrent_runs(limit, times, autojump_clock):
    """Runs go on beside one another, at most `limit` of them; one more waits."""
    async with open_router() as router:
        router.on(Go, overlap="concurrent", limit=limit).stream(second).broadcast()
        got = chunks_of(router)
        for n in range(5):
            router.publish(Go(n=n))
        await trio.sleep(10)
        assert [at for at, _ in got] == times
        assert sorted(n for _, n in got) == list(range(5))


async def test_the_stages_before_a_stream_run_at_once(autojump_clock):
    """Sync stages run in the step of the trigger, also for a trigger that then waits."""
    seen = []

    def note(message):
        seen.append((trio.current_time(), message.event.n))
        return message if message.event.n != 1 else None

    async with open_router() as router:
        route = router.on(Go).map(note).stream(second).broadcast()
        got = chunks_of(router)
        for n in range(3):
            router.publish(Go(n=n))
        await trio.sleep(5)
        assert seen == [(0, 0), (0, 1), (0, 2)]
        assert got == [(1, 0), (2, 2)]
        assert router.runtime(route).statistics.started == 2


@pytest.mark.parametrize("overlap", ["queue", "drop", "restart"])
async def test_lambdas_that_give_coroutines_keep_the_policy(overlap, autojump_clock):
    """A plain function that gives a coroutine makes runs too, and they obey `overlap=`."""
    done = []

    async def work(n):
        await trio.sleep(1)
        done.append((trio.current_time(), n))

    async with open_router() as router:
        router.on(Go, overlap=overlap).map(lambda m: work(m.event.n))
        for n in range(3):
            router.publish(Go(n=n))
        await trio.sleep(10)
    expected = {
        "queue": [(1, 0), (2, 1), (3, 2)],
        "drop": [(1, 0)],
        "restart": [(1, 2)],
    }
    assert done == expected[overlap]


async def test_waiting_triggers_of_a_cut_run_are_dropped(autojump_clock):
    """A trigger that waits while its cause is cut never begins."""
    called = []

    async def slow(message):
        called.append(message.event.n)
        await trio.sleep(2)
        yield

    async def two(message):
        yield Chunk(n=1)
        yield Chunk(n=2)
        await trio.sleep_forever()

    async with open_router() as router:
        router.on(Go).interrupt_on(Stop).stream(two).broadcast()
        route = router.on(Chunk).stream(slow)
        router.publish(Go())
        await trio.sleep(1)
        router.publish(Stop())
        await trio.sleep(5)
        assert called == [1]
        assert router.runtime(route).statistics.dropped == 1
        assert router.runtime(route).decisions[-1].why == "what caused it was cut"


async def test_coroutines_that_are_never_awaited_are_closed(autojump_clock):
    """What a lambda gave and nobody will await is closed: no warning, no leak."""

    async def work(message):
        yield message
        await trio.sleep_forever()

    async def check(message):
        return True

    async with open_router() as router:
        base = router.on(Go).interrupt_on(Stop)
        mapped = base.map(lambda m: later(m)).stream(work)
        filtered = base.filter(lambda m: check(m)).stream(work)
        inline = base.map(lambda m: later(m))
        generated = base.map(lambda m: (x for x in [m])).stream(work)
        for _ in range(3):
            router.publish(Go())
        router.publish(Stop())  # before any of their tasks has begun
        await trio.sleep(1)
        for route in (mapped, filtered, inline, generated):
            assert router.runtime(route).statistics.cut == 1
            assert router.runtime(route).statistics.dropped == 2
