"""A chain at work: overlap, order, failures, handlers, decisions."""

from typing import Literal

import pytest
import structlog
import trio

from routes import Event, PublishLoop, open_router


class Go(Event):
    type: Literal["wk.go"] = "wk.go"
    n: int = 0


class Stop(Event):
    type: Literal["wk.stop"] = "wk.stop"


class Chunk(Event):
    type: Literal["wk.chunk"] = "wk.chunk"
    n: int = 0


async def second(message):
    """Gives one chunk after a second."""
    await trio.sleep(1)
    yield Chunk(n=message.event.n)


async def forever(message):
    await trio.sleep_forever()
    yield


def chunks_of(router):
    got = []
    router.add_sink(lambda message: got.append((trio.current_time(), message.event.n)), Chunk)
    return got


def verdicts(router, route):
    return [decision.verdict for decision in router.runtime(route).decisions]


# --- overlap ----------------------------------------------------------------------------------


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


async def later(message):
    return message


# --- failures ---------------------------------------------------------------------------------


async def test_a_failing_stage_ends_its_run_only(autojump_clock):
    """A failing stage is told with run, route and stage; other routes and triggers work."""
    failures, outcomes = [], []

    async def fails_first(message):
        await trio.sleep(1)
        if message.event.n == 0:
            raise ValueError("first")
        yield Chunk(n=message.event.n)

    async with open_router() as router:
        route = router.on(Go).stream(fails_first).broadcast()
        router.on(Go).stream(second).broadcast()
        got = chunks_of(router)
        router.on_failure = lambda *args: failures.append(args)
        router.on_run_end = lambda run: outcomes.append((run.id, run.outcome))
        with structlog.testing.capture_logs() as logs:
            router.publish(Go(n=0))
            await trio.sleep(1.5)
        router.publish(Go(n=1))
        await trio.sleep(5)
        ((run, failed_route, stage, error),) = failures
        assert (run.id, run.outcome, failed_route, stage) == (
            1, "failed", route, ".stream(fails_first)"
        )  # fmt: skip
        assert isinstance(error, ValueError)
        assert sorted(got) == [(1, 0), (2.5, 1), (2.5, 1)]
        assert router.runtime(route).statistics.failed == 1
        assert sorted(outcomes) == [
            (1, "failed"),
            (2, "completed"),
            (3, "completed"),
            (4, "completed"),
        ]
        (line,) = logs
        assert (line["event"], line["error"], line["pii_error"]) == (
            "stage_failed", "ValueError", "first"
        )  # fmt: skip


async def test_sync_failures_are_counted_and_told(autojump_clock):
    """A sync chain that raises is told too; the publisher never sees it."""
    failures = []
    async with open_router() as router:
        router.on_failure = lambda run, route, stage, error: failures.append((run, stage))
        plain = router.on(Go).map(lambda m: 1 / 0)
        ruled = router.on(Go).interrupt_on(Stop).map(lambda m: 1 / 0)
        waits = router.on(Go).map(lambda m: 1 / 0).stream(forever)
        router.publish(Go())
        assert [router.runtime(r).statistics.failed for r in (plain, ruled, waits)] == [1, 1, 1]
    assert [stage for _, stage in failures] == [".map(<lambda>)"] * 3
    assert [run and run.outcome for run, _ in failures] == [None, "failed", None]


async def test_every_error_of_a_group_is_told(autojump_clock):
    """A node whose own nursery fails is told error by error."""
    failures, outcomes = [], []

    async def boom(text):
        raise ValueError(text)

    async def tasks(message):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(boom, "a")
            nursery.start_soon(boom, "b")
        yield

    async with open_router() as router:
        router.on_failure = lambda run, route, stage, error: failures.append((stage, str(error)))
        router.on_run_end = lambda run: outcomes.append(run.outcome)
        router.on(Go).stream(tasks)
        router.publish(Go())
        await trio.sleep(1)
    assert sorted(failures) == [(".stream(tasks)", "a"), (".stream(tasks)", "b")]
    assert outcomes == ["failed"]


async def failing_clean_up(message):
    try:
        await trio.sleep_forever()
        yield
    finally:
        raise ValueError("clean-up")


async def failing_clean_up_in_nursery(message):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("clean-up")
    yield


@pytest.mark.parametrize("node", [failing_clean_up, failing_clean_up_in_nursery])
@pytest.mark.parametrize("buffered", [False, True])
@pytest.mark.parametrize("how", ["cut", "closed", "cancelled"])
async def test_a_failing_clean_up_is_contained(node, buffered, how, autojump_clock):
    """An error in the clean-up of a cut or closed run is told, and breaks nothing else."""
    failures, outcomes, told = [], [], []
    with trio.move_on_after(2 if how == "cancelled" else 100):
        async with open_router() as router:
            router.on_failure = lambda run, route, stage, error: failures.append(str(error))
            router.on_run_end = lambda run: outcomes.append(run.outcome)
            route = router.on(Go).interrupt_on(Stop, handler=lambda: told.append(1)).stream(node)
            route = route.buffer(2) if buffered else route
            router.publish(Go())
            await trio.sleep(1)
            if how == "cut":
                router.publish(Stop())
                await trio.sleep(1)
                assert router.runtime(route).runs == ()
            if how == "cancelled":
                await trio.sleep_forever()
    assert failures == ["clean-up"]
    assert outcomes == (["interrupted"] if how == "cut" else ["failed"])
    assert told == ([1] if how == "cut" else [])


async def test_runs_end_with_the_word_of_the_router(autojump_clock):
    """Runs that end because the router does carry its outcome, however it is ended."""
    for end in ("leave", "close", "cancel", "crash"):
        outcomes = []
        with trio.CancelScope() as scope:
            try:
                async with open_router() as router:
                    router.on_run_end = lambda run, outcomes=outcomes: outcomes.append(run.outcome)
                    router.on(Go, overlap="concurrent").stream(forever)
                    router.on(Go, overlap="concurrent").stream(forever).buffer(1)
                    for _ in range(10):
                        router.publish(Go())
                    await trio.sleep(1)
                    if end == "close":
                        router.close("disconnected")
                        router.close("shutdown")
                        await trio.sleep(1)
                    if end == "cancel":
                        scope.cancel()
                        await trio.lowlevel.checkpoint()
                    if end == "crash":
                        router.nursery.start_soon(second, "no message")  # not even a function
                        await trio.sleep(1)
            except ExceptionGroup:
                assert end == "crash"
        assert outcomes == ["disconnected" if end == "close" else "shutdown"] * 20


async def test_a_node_that_ends_the_program_ends_it(autojump_clock):
    """SystemExit passes through, and the run does not claim to be complete."""
    outcomes = []

    async def leaves(message):
        await trio.sleep(1)
        raise SystemExit(3)
        yield

    with pytest.RaisesGroup(SystemExit):
        async with open_router() as router:
            router.on_run_end = lambda run: outcomes.append(run.outcome)
            router.on(Go).stream(leaves)
            router.publish(Go())
            await trio.sleep_forever()
    assert outcomes == ["shutdown"]


# --- handlers ---------------------------------------------------------------------------------


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
        router.on_failure = lambda run, route, stage, error: failures.append((run.id, stage))
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
        router.on_run_end = lambda run: outcomes.append(run.outcome)
        router.publish(Go())
        await trio.sleep(2)
        assert outcomes == ["interrupted"]
        assert got == []
        router.on_run_end = lambda run: router.publish(Stop())
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


# --- bounds -----------------------------------------------------------------------------------


async def test_a_shielded_clean_up_cannot_hold_up_the_next_turn(autojump_clock):
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
        router.on_run_end = lambda run: ends.append((run.id, run.outcome, trio.current_time()))
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
        router.on_failure = lambda run, route, stage, error: failures.append(str(error))
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
        router.on_failure = lambda run, route, stage, error: failures.append((stage, error))
        route = router.on(Go).interrupt_on(Stop).map(lambda m: router.publish(Go()) and None)
        router.publish(Go())
        ((stage, error),) = failures
        assert stage == "on(Go)"
        assert isinstance(error, PublishLoop)
        assert router.runtime(route).statistics.started < 50
        failures.clear()
        router.publish(Go())
        assert len(failures) == 1


# --- why --------------------------------------------------------------------------------------


async def test_a_route_can_be_asked_why(autojump_clock):
    """Each event leaves a line: time, event, message, verdict and the rule that decided."""
    async with open_router() as router:
        route = router.on(Go).interrupt_on(Stop, condition=lambda m: m.id > 3).stream(second)
        router.publish(Stop())
        router.publish(Go())
        await trio.sleep(0.5)
        router.publish(Stop())
        router.publish(Stop())
        await trio.sleep(1)
        rule = "interrupt_on(Stop, condition=<lambda>)"
        assert [tuple(line) for line in router.runtime(route).decisions] == [
            (0, "wk.stop", 1, "idle", f"{rule}: nothing was running"),
            (0, "wk.go", 2, "matched", "run 1"),
            (0.5, "wk.stop", 3, "gated", f"{rule}: the condition was False"),
            (0.5, "wk.stop", 4, "cut", f"{rule}: run 1"),
        ]


async def test_the_log_is_bounded(autojump_clock):
    """A route keeps its last 128 lines."""
    async with open_router() as router:
        route = router.on(Go).interrupt_on(Stop).stream(second)
        for _ in range(200):
            router.publish(Stop())
        assert len(router.runtime(route).decisions) == 128


async def test_only_routes_that_declare_the_event_are_cut(autojump_clock):
    """An interrupt reaches the runs of the routes that name it, and no others."""
    async with open_router() as router:
        named = router.on(Go).interrupt_on(Stop).stream(forever)
        other = router.on(Go).stream(forever)
        router.publish(Go())
        await trio.sleep(1)
        router.publish(Stop())
        await trio.sleep(1)
        assert router.runtime(named).runs == ()
        assert len(router.runtime(other).runs) == 1


async def test_no_stage_sees_a_value_made_after_the_cut(autojump_clock):
    """A value that a node gives although it was cut goes into no stage, sync or waiting."""
    seen = []

    async def deaf_once(message):
        yield 0
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            yield 1
            raise

    for build in (
        lambda r: r.stream(deaf_once).map(seen.append),
        lambda r: r.map(lambda m: deaf_once(m)).map(seen.append),
        lambda r: r.stream(deaf_once).broadcast().map(later),
    ):
        seen.clear()
        async with open_router() as router:
            route = build(router.on(Go).interrupt_on(Stop))
            router.publish(Go())
            await trio.sleep(1)
            router.publish(Stop())
            await trio.sleep(1)
            assert 1 not in seen
            assert router.runtime(route).runs == ()
