"""Where messages leave the routes."""

from typing import Literal

import pytest
import structlog
import trio

from bargein.routes import Event, RouteDefinitionError, open_router


class Go(Event):
    type: Literal["sk.go"] = "sk.go"
    n: int = 0


class Stop(Event):
    type: Literal["sk.stop"] = "sk.stop"


class Chunk(Event):
    type: Literal["sk.chunk"] = "sk.chunk"
    n: int = 0


async def test_a_plain_sink_is_called_at_once():
    """A plain function gets each message in the step in which it is published, after all chains."""
    order = []
    async with open_router() as router:
        assert router.add_sink(lambda m: order.append(("sink", type(m.event)))) is None
        router.on(Go).map(lambda m: order.append("chain") or Chunk()).broadcast()
        router.publish(Go())
    assert order == ["chain", ("sink", Chunk), ("sink", Go)]


async def test_a_sink_may_take_some_messages_only():
    """A sink names its messages as a chain does, predicates included."""
    got, odd = [], []
    async with open_router() as router:
        router.add_sink(lambda m: got.append(m.event.n), Chunk)
        router.add_sink(lambda m: odd.append(m.event.n), lambda m: getattr(m.event, "n", 0) % 2)
        for n in range(4):
            router.publish(Chunk(n=n))
            router.publish(Go(n=n))
    assert got == [0, 1, 2, 3]
    assert odd == [1, 1, 3, 3]


async def test_a_sink_may_leave_classes_out():
    """What is of a class under `unless`, or of a subclass, does not reach a sink."""

    class LastChunk(Chunk):
        last: bool = True

    all_but_chunks, all_but_two, chunks_but_last = [], [], []
    async with open_router() as router:
        router.add_sink(lambda m: all_but_chunks.append(type(m.event)), unless=(Chunk,))
        router.add_sink(lambda m: all_but_two.append(type(m.event)), unless=(Go, LastChunk))
        router.add_sink(lambda m: chunks_but_last.append(type(m.event)), Chunk, unless=(LastChunk,))
        for event in (Go(), Chunk(), LastChunk(), Stop()):
            router.publish(event)
    assert all_but_chunks == [Go, Stop]
    assert all_but_two == [Chunk, Stop]
    assert chunks_but_last == [Chunk]


async def test_an_async_sink_leaves_classes_out_too():
    """A sink with a queue of its own is never woken for what it leaves out."""
    got = []

    async def take(message):
        await trio.lowlevel.checkpoint()
        got.append(type(message.event))

    async with open_router() as router:
        router.add_sink(take, unless=(Chunk,))
        for event in (Chunk(), Go(), Chunk()):
            router.publish(event)
        await trio.testing.wait_all_tasks_blocked()
        assert got == [Go]


async def test_a_broken_sink_hinders_nobody(autojump_clock):
    """What a sink raises, plain or async, is logged by name, once; others get the message."""
    got = []

    def broken(message):
        raise ValueError("broken")

    async def later_broken(message):
        raise ValueError("broken")

    async with open_router() as router:
        router.add_sink(broken)
        router.add_sink(broken, lambda m: True)
        router.add_sink(later_broken)
        router.add_sink(got.append)
        router.add_sink(lambda m: got.append(m), lambda m: 1 / 0)
        with structlog.testing.capture_logs() as logs:
            router.publish(Go())
            router.publish(Go())
            await trio.testing.wait_all_tasks_blocked()
    assert len(got) == 2
    assert [line["event"] for line in logs] == ["sink_failed"] * 4
    names = [line.get("receiver") or line["sink"] for line in logs]
    assert names[:2] == [["test_a_broken_sink_hinders_nobody", "<locals>", "broken"][-1]] * 2
    assert names.count("later_broken") == 1


@pytest.mark.parametrize("limit", [0, -1, True, 1.5])
async def test_an_impossible_limit_is_refused(limit):
    """A limit below 1 would delay runs for ever."""
    async with open_router() as router:
        with pytest.raises(RouteDefinitionError, match="limit= is a whole number from 1"):
            router.add_sink(print, limit=limit)
        with pytest.raises(RouteDefinitionError, match="needs a function"):
            router.add_sink(None)


async def test_an_async_sink_delays_its_own_runs_only(autojump_clock):
    """A full queue makes the runs that fill it wait, to the millisecond, and nobody else."""
    made, fast = [], []

    async def stream(message):
        for n in range(6):
            made.append((trio.current_time(), n))
            yield Chunk(n=n)

    async def slow(message):
        await trio.sleep(1)

    async def quick(message):
        for n in range(3):
            await trio.sleep(0.1)
            yield Go(n=n)

    async with open_router() as router:
        queue = router.add_sink(slow, Chunk, limit=2)
        router.add_sink(lambda m: fast.append(trio.current_time()), [Go], limit=2)
        router.on(Stop).stream(stream).broadcast()
        router.on(Stop).stream(quick).broadcast()
        router.publish(Stop())
        await trio.sleep(10)
        assert queue.limit == 2
        assert queue.stale == queue.overflowed == 0
    assert [round(at, 1) for at, _ in made] == [0, 0, 0, 1, 2, 3]
    assert [round(at, 1) for at in fast] == [0.1, 0.2, 0.3]


async def test_a_callable_object_is_an_async_sink(autojump_clock):
    """An object whose call is async gets a queue as well."""
    got = []

    class Sink:
        async def __call__(self, message):
            got.append(message.event.n)

    async with open_router() as router:
        assert router.add_sink(Sink()) is not None
        router.publish(Go(n=4))
        await trio.testing.wait_all_tasks_blocked()
    assert got == [4]


async def test_what_waits_behind_a_slow_sink_is_silenced(autojump_clock):
    """190 messages behind a sink that takes 2 ms each: after the interrupt none arrives."""
    arrived = []

    async def burst(message):
        for n in range(200):
            yield Chunk(n=n)

    async def slow(message):
        arrived.append(message.event.n)
        await trio.sleep(0.002)

    async with open_router() as router:
        queue = router.add_sink(slow, Chunk, limit=500)
        router.on(Go).interrupt_on(Stop).stream(burst).broadcast()
        router.publish(Go())
        await trio.sleep(0.019)
        before = list(arrived)
        assert before == list(range(10))
        route = router.routes[0]
        (run,) = route.runs
        assert run.outcome == "completed"  # long ago, but what it gave has not arrived
        router.publish(Stop())
        await trio.sleep(1)
        assert arrived == before
        assert queue.stale == 190


async def test_a_burst_is_silenced_in_the_step_of_the_interrupt(autojump_clock):
    """200 chunks yielded at once: none reaches a plain sink after the interrupt."""
    got = []

    async def burst(message):
        for n in range(200):
            yield Chunk(n=n)

    async with open_router() as router:
        router.on(Go).interrupt_on(Stop).stream(burst).broadcast()
        router.add_sink(lambda m: got.append(m.event.n), Chunk)
        router.publish(Go())
        for _ in range(50):
            await trio.lowlevel.checkpoint()
        router.publish(Stop())
        before = len(got)
        assert 0 < before < 200
        await trio.sleep(1)
        assert len(got) == before


async def test_publishers_that_cannot_wait_overflow_in_the_end(autojump_clock):
    """A queue that nobody can be made to wait for is bounded; the loss is counted and told once."""
    got = []

    async def stuck(message):
        got.append(message.event.n)
        await trio.sleep(1)

    async with open_router() as router:
        queue = router.add_sink(stuck, Go, limit=5)
        with structlog.testing.capture_logs() as logs:
            for n in range(4096 + 5):
                router.publish(Go(n=n))
        assert [line["event"] for line in logs] == ["sink_overflow"]
        await trio.sleep(5000)
        assert queue.overflowed == 5
    assert got == list(range(4096))


async def test_a_delayed_run_is_cut_at_once(autojump_clock):
    """A run that waits for a sink is cut like any other."""

    async def stream(message):
        for n in range(100):
            yield Chunk(n=n)

    async def stuck(message):
        await trio.sleep(50)

    async with open_router() as router:
        queue = router.add_sink(stuck, Chunk, limit=3)
        route = router.on(Go).interrupt_on(Stop).stream(stream).broadcast()
        router.publish(Go())
        await trio.sleep(1)
        (run,) = router.runtime(route).runs
        router.publish(Stop())
        await run.finished()
        assert trio.current_time() == 1
        await trio.sleep(60)
        assert queue.stale == 3


@pytest.mark.parametrize("where", ["between", "lambda"])
async def test_every_stage_waits_for_a_full_sink(where, autojump_clock):
    """Broadcasts between waiting stages, and after a lambda's generator, are delayed too."""

    async def stream(message):
        for n in range(6):
            made.append(n)
            yield Chunk(n=n)

    async def pass_on(value):
        return value

    async def slow(message):
        await trio.sleep(1)

    made = []
    async with open_router() as router:
        router.add_sink(slow, Chunk, limit=2)
        route = router.on(Go)
        if where == "between":
            route = route.stream(stream).broadcast().map(pass_on)
        else:
            route = route.map(lambda m: stream(m)).broadcast()
        router.publish(Go())
        await trio.sleep(1.5)
        assert made == [0, 1, 2, 3]  # one is done, one at work, two wait
        assert router.runtime(route).runs
        await trio.sleep(10)
        assert not router.runtime(route).runs


def _list(message):
    return [Chunk(n=n) for n in range(200)]


async def _generate(message):
    for n in range(200):
        yield Chunk(n=n)


@pytest.mark.parametrize("limit", [1, 500])
@pytest.mark.parametrize("answer", [_list, _generate])
@pytest.mark.parametrize("hops", [1, 2])
async def test_nothing_of_a_cut_run_leaves_the_queue(autojump_clock, limit, answer, hops):
    """What waits for a slow sink is stale with its run, also when that had given all of it."""
    got = []

    async def sink(message):
        got.append(message.event.n)
        await trio.sleep(0.1)

    async with open_router() as router:
        router.add_sink(sink, Chunk, limit=limit)
        chain = router.on(Go, where=lambda m: m.event.n == hops).interrupt_on(Stop)
        if hops == 2:
            chain.map(lambda m: Go(n=0)).broadcast()
            router.on(Go, n=0).stream(answer).broadcast()
        else:
            chain.stream(answer).broadcast()
        router.publish(Go(n=hops))
        await trio.sleep(1.05)
        assert len(got) == 11
        router.publish(Stop())
        await trio.sleep(60)
        assert len(got) == 11
        assert [run for runtime in router.routes for run in runtime.runs] == []
