"""Interrupt handlers run between two runs, bounded."""

import pytest
import structlog
import trio

from bargein.routes import open_router

from .events import Chunk, Go, Stop, chunks_of, forever, second, verdicts


async def test_the_handler_runs_between_two_runs(autojump_clock):
    """The handler runs after the cut run has unwound, and before the next one begins."""
    order = []

    async def node(message):
        order.append(("begins", message.event.n))
        try:
            await trio.sleep(10)
            yield
        finally:
            with trio.move_on_after(1, shield=True):
                await trio.sleep(0.3)
            order.append(("unwound", trio.current_time()))

    async def handler():
        order.append(("handler", trio.current_time()))
        await trio.sleep(0.3)
        order.append(("handled", trio.current_time()))

    async with open_router() as router:
        router.on(Go).interrupt_on(Stop, handler=handler).stream(node)
        router.publish(Go(n=0))
        await trio.sleep(1)
        router.publish(Stop())
        await trio.sleep(0.005)
        router.publish(Go(n=1))  # 5 ms after the barge-in, while the old run cleans up
        await trio.sleep(1)
        assert order == [
            ("begins", 0), ("unwound", 1.3), ("handler", 1.3), ("handled", 1.6), ("begins", 1)
        ]  # fmt: skip


async def test_a_handler_that_raises_is_told(autojump_clock):
    """A failing handler is told with its rule as stage, and the next turn works."""
    failures = []

    async def handler():
        raise ValueError("handler")

    async with open_router() as router:
        router.listen(failed=lambda run, route, stage, error: failures.append((run.id, stage)))
        router.on(Go).interrupt_on(Stop, handler=handler).stream(second).broadcast()
        got = chunks_of(router)
        router.publish(Go())
        await trio.sleep(0.5)
        router.publish(Stop())
        router.publish(Go(n=7))
        await trio.sleep(5)
        assert failures == [(1, "interrupt_on(Stop, handler=handler)")]
        assert got == [(1.5, 7)]


@pytest.mark.parametrize("shielded", [False, True])
async def test_a_handler_that_hangs_is_bounded(shielded, autojump_clock):
    """A handler is cut at its limit; one that shields itself is abandoned a second later."""

    async def handler():
        with trio.CancelScope(shield=shielded):
            await trio.sleep(60)

    async with open_router(handler_s=0.5) as router:
        route = router.on(Go).interrupt_on(Stop, handler=handler).stream(second).broadcast()
        got = chunks_of(router)
        router.publish(Go())
        await trio.sleep(0.25)
        with structlog.testing.capture_logs() as logs:
            router.publish(Stop())
            router.publish(Go(n=7))
            await trio.sleep(5)
        assert got == [(0.25 + (1.5 if shielded else 0.5) + 1, 7)]
        (line,) = logs
        assert line["event"] == ("run_did_not_unwind" if shielded else "handler_too_slow")
        assert router.runtime(route).statistics.abandoned == int(shielded)
        await trio.sleep(60)


async def test_what_a_handler_publishes_is_not_stale(autojump_clock):
    """A handler speaks for the route, not for the run that was cut."""
    got = []
    async with open_router() as router:

        async def handler():
            router.publish(Chunk(n=5))

        router.on(Go).interrupt_on(Stop, handler=handler).stream(forever)
        router.add_sink(lambda m: got.append(m.run), Chunk)
        router.publish(Go())
        await trio.sleep(1)
        router.publish(Stop())
        await trio.sleep(1)
    assert got == [None]


async def test_a_handler_is_called_while_the_router_closes(autojump_clock):
    """A run that is cut in the last moment still has its handler called, in bounded time."""
    told = []

    async def handler():
        await trio.sleep(0.4)
        told.append(trio.current_time())

    async def slow_clean_up(message):
        try:
            await trio.sleep_forever()
            yield
        finally:
            with trio.move_on_after(1, shield=True):
                await trio.sleep(0.2)

    for node in (forever, slow_clean_up):
        told.clear()
        async with open_router() as router:
            router.on(Go).interrupt_on(Stop, handler=handler).stream(node)
            router.publish(Go())
            await trio.sleep(1)
            start_s = trio.current_time()
            router.publish(Stop())
        assert told == [start_s + (0.4 if node is forever else 0.6)]


async def test_no_handler_is_called_when_nothing_ran(autojump_clock):
    """An idle interrupt is a no-op: nothing is called, nothing started, and the log says why."""
    told = []
    async with open_router() as router:
        route = router.on(Go).interrupt_on(Stop, handler=lambda: told.append(1)).stream(second)
        for _ in range(3):
            router.publish(Stop())
        await trio.sleep(1)
        assert told == []
        (line, *_) = router.runtime(route).decisions
        assert (line.verdict, line.why.endswith("nothing was running")) == ("idle", True)
        router.publish(Go())
        await trio.sleep(5)
        router.publish(Stop())
        await trio.sleep(1)
    assert told == []


@pytest.mark.parametrize("waits", [False, True])
async def test_a_run_that_interrupts_itself(waits, autojump_clock):
    """An interrupt that the run itself publishes, by a sync route, cuts it in that step."""
    got, told = [], []

    async def stream(message):
        for n in range(3):
            yield Chunk(n=n)
            if waits:
                await trio.sleep(1)

    async with open_router() as router:
        router.on(Chunk, n=1).map(lambda m: router.publish(Stop()) and None)
        route = router.on(Go).interrupt_on(Stop, handler=lambda: told.append(1)).stream(stream)
        route = route.broadcast()
        router.add_sink(lambda m: got.append(m.event.n), Chunk)
        router.publish(Go())
        await trio.sleep(5)
        assert got == [0]  # not the chunk that brought the interrupt about, nor any later
        assert told == [1]
        assert router.runtime(route).runs == ()


async def test_an_inline_run_that_interrupts_itself_is_handled(autojump_clock):
    """A run without task, cut by what it publishes, has its handler called once as well."""
    told, got = [], []
    async with open_router() as router:

        def cut_me(message):
            router.publish(Stop())
            return Chunk(n=1)

        route = router.on(Go).interrupt_on(Stop, handler=lambda: told.append(1)).map(cut_me)
        route = route.broadcast()
        router.add_sink(got.append, Chunk)
        router.publish(Go())
        router.publish(Go())
        await trio.sleep(1)
        assert got == []
        assert told == [1, 1]
        assert router.runtime(route).statistics.cut == 2
        assert router.runtime(route).runs == ()


async def test_an_interrupt_in_the_step_in_which_the_run_ends(autojump_clock):
    """Published as the last thing of the run, an interrupt cuts it; a step later it is idle."""
    outcomes = []

    async def last_words(message):
        await trio.sleep(1)
        router.publish_detached(Stop())
        yield Chunk()

    async with open_router() as router:
        got = chunks_of(router)
        route = router.on(Go).interrupt_on(Stop).stream(last_words).broadcast()
        router.listen(run_ended=lambda run: outcomes.append(run.outcome))
        router.publish(Go())
        await trio.sleep(2)
        assert outcomes == ["interrupted"]
        assert got == []
        router.listen(run_ended=lambda run: router.publish(Stop()))
        router.on(Chunk).stream(second)
        router.publish(Chunk())
        await trio.sleep(2)
        assert verdicts(router, route)[-1] == "idle"


async def test_an_interrupt_before_the_run_has_begun(autojump_clock):
    """Trigger and interrupt in one step: no code of the node runs, and the handler is told."""
    called, told = [], []

    async def node(message):
        called.append(1)
        yield

    async with open_router() as router:
        router.on(Go).interrupt_on(Stop, handler=lambda: told.append(1)).stream(node)
        router.publish(Go())
        router.publish(Stop())
        await trio.sleep(1)
        assert (called, told) == ([], [1])
