"""A run that fails ends alone, and is told."""

import pytest
import structlog
import trio

from bargein.routes import CodeExitError, open_router

from .events import Chunk, Go, Stop, chunks_of, forever, second


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
        router.listen(failed=lambda *args: failures.append(args))
        router.listen(run_ended=lambda run: outcomes.append((run.id, run.outcome)))
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
        router.listen(failed=lambda run, route, stage, error: failures.append((run, stage)))
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
        router.listen(failed=lambda run, route, stage, error: failures.append((stage, str(error))))
        router.listen(run_ended=lambda run: outcomes.append(run.outcome))
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
            router.listen(failed=lambda run, route, stage, error: failures.append(str(error)))
            router.listen(run_ended=lambda run: outcomes.append(run.outcome))
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
                    router.listen(
                        run_ended=lambda run, outcomes=outcomes: outcomes.append(run.outcome)
                    )
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
            except TypeError:
                assert end == "crash"
        assert outcomes == ["disconnected" if end == "close" else "shutdown"] * 20


async def test_a_node_that_ends_the_program_ends_its_run_alone(autojump_clock):
    """SystemExit is told like any error: its run has failed, and the next one works."""
    outcomes, errors = [], []

    async def leaves(message):
        await trio.sleep(1)
        if not outcomes:
            raise SystemExit(3)
        yield

    async with open_router() as router:
        router.listen(run_ended=lambda run: outcomes.append(run.outcome))
        router.listen(caught=errors.append)
        router.on(Go).stream(leaves)
        for _ in range(2):
            router.publish(Go())
            await trio.sleep(2)
    assert outcomes == ["failed", "completed"]
    (error,) = errors
    assert isinstance(error, CodeExitError)
    assert error.error.code == 3
