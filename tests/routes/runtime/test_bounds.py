"""What never ends delays nothing else."""

import pytest
import structlog
import trio

from bargein.routes import PublishLoopError, open_router

from .events import Chunk, Go, Stop


async def test_a_shielded_clean_up_cannot_delay_the_next_turn(autojump_clock):
    """A clean-up past its limit is abandoned: told of, handled, and the next run begins."""
    order = []

    async def node(message):
        if message.event.n:
            order.append(("next", trio.current_time()))
            return
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(60)
            order.append(("unwound", trio.current_time()))
        yield

    ends = []
    async with open_router(unwind_s=1) as router:
        route = router.on(Go).interrupt_on(
            Stop, handler=lambda: order.append(("handler", trio.current_time()))
        )
        route = route.stream(node)
        router.listen(run_ended=lambda run: ends.append((run.id, run.outcome, trio.current_time())))
        router.publish(Go())
        await trio.sleep(1)
        with structlog.testing.capture_logs() as logs:
            router.publish(Stop())
            (run,) = router.runtime(route).runs
            router.publish(Go(n=1))
            await run.finished()
            assert trio.current_time() == 2
            await trio.sleep(100)
        assert order == [("handler", 2), ("next", 2), ("unwound", 61)]
        assert ends == [(1, "interrupted", 2), (2, "completed", 2)]
        assert router.runtime(route).statistics.abandoned == 1
        (line,) = logs
        assert (line["event"], line["doing"], line["run"]) == ("run_did_not_unwind", "unwinding", 1)


async def test_an_abandoned_run_that_fails_late_is_told(autojump_clock):
    """What goes wrong in a run after it was abandoned is still told, and breaks nothing."""
    failures = []

    async def node(message):
        try:
            await trio.sleep_forever()
            yield
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(5)
            raise ValueError("late")

    async with open_router() as router:
        router.listen(failed=lambda run, route, stage, error: failures.append(str(error)))
        route = router.on(Go).interrupt_on(Stop).stream(node)
        router.publish(Go())
        await trio.sleep(1)
        router.publish(Stop())
        await trio.sleep(10)
        assert failures == ["late"]
        assert router.runtime(route).statistics.failed == 0


@pytest.mark.parametrize("yields", [False, True])
async def test_a_node_that_swallows_everything_is_survived(yields, autojump_clock):
    """`except BaseException: pass` in a loop: nothing of it is heard, and the next run begins."""
    let_go = False
    got, kept = [], []

    async def deaf(message):
        if message.event.n:
            yield Chunk(n=message.event.n)
            return
        while True:
            try:
                await trio.sleep(0.25)
            except BaseException:
                if let_go:
                    raise
            if yields:
                try:
                    yield Chunk(n=0)
                except BaseException:
                    if let_go:
                        raise

    def keep(message):
        kept.append(deaf(message))
        return kept[-1]

    async with open_router(unwind_s=0.5) as router:
        route = router.on(Go).interrupt_on(Stop).stream(keep).broadcast()
        router.add_sink(lambda m: got.append((trio.current_time(), m.event.n)), Chunk)
        router.publish(Go())
        await trio.sleep(0.6)
        router.publish(Stop())
        router.publish(Go(n=7))
        if yields:
            await trio.sleep(5)
        else:
            await trio.lowlevel.checkpoint()
            autojump_clock.jump(1)  # it keeps the loop busy, so that no time passes by itself
            for _ in range(20):
                await trio.lowlevel.checkpoint()
        # It is closed once more by the run; where it never yields, the run is abandoned.
        assert got == ([(0.25, 0), (0.5, 0), (0.85, 7)] if yields else [(1.6, 7)])
        assert router.runtime(route).statistics.abandoned == int(not yields)
        let_go = True
    kept.clear()


async def test_many_waiting_inline_runs_do_not_nest(autojump_clock):
    """A thousand sync triggers that waited are carried out one by one, however many."""
    seen = []

    async def handler():
        await trio.sleep(0.5)

    def step(message):
        seen.append(message.event.n)
        if message.event.n == 0:
            router.publish(Stop())

    async with open_router() as router:
        router.on(Go, limit=2000).interrupt_on(Stop, handler=handler).map(step)
        for n in range(1000):
            router.publish(Go(n=n))
        assert seen == [0]
        await trio.sleep(1)
        assert seen == list(range(1000))


async def test_a_sync_run_that_triggers_itself_is_stopped():
    """A sync chain with rules that publishes its own trigger fails instead of going on for ever."""
    failures = []
    async with open_router() as router:
        router.listen(failed=lambda run, route, stage, error: failures.append((stage, error)))
        route = router.on(Go).interrupt_on(Stop).map(lambda m: router.publish(Go()) and None)
        router.publish(Go())
        ((stage, error),) = failures
        assert stage == "on(Go)"
        assert isinstance(error, PublishLoopError)
        assert router.runtime(route).statistics.started < 50
        caught = []
        router.listen(caught=caught.append)
        router.publish(Go())
        assert [type(error) for error in caught] == [PublishLoopError]
