"""One synchronous step from a publication to everything that is meant."""

from dataclasses import dataclass
from typing import Literal

import pytest
import structlog
import trio
import trio.testing
from pydantic import BaseModel

from bargein.routes import Event, PublishLoopError, RouteDefinitionError, open_router
from tests.living import living_tasks

DEPTH_LIMIT = 32


class Go(Event):
    type: Literal["rr.go"] = "rr.go"
    n: int = 0


class GoFast(Go):
    pass


class Stop(Event):
    type: Literal["rr.stop"] = "rr.stop"


class Chunk(Event):
    type: Literal["rr.chunk"] = "rr.chunk"
    n: int = 0


class Mine(BaseModel):
    weight: int = 0


@dataclass(frozen=True, slots=True)
class Frame:
    pcm: bytes = b""


async def forever(message):
    await trio.sleep_forever()
    yield


async def test_publishing_to_sync_routes_takes_no_scheduler_step():
    """Rules, filters, sync stages, broadcasts and sinks are plain calls: no checkpoint, no task."""
    order = []
    async with open_router() as router:
        router.on(Go).filter(lambda m: m.event.n).map(lambda m: Chunk(n=m.event.n)).broadcast()
        router.on(Go).interrupt_on(Stop).map(lambda m: Chunk(n=m.event.n * 10)).broadcast()
        router.add_sink(lambda m: order.append(m.event.n), Chunk)
        tasks = living_tasks()
        runnable = trio.lowlevel.current_statistics().tasks_runnable
        with trio.testing.assert_no_checkpoints():
            router.publish(Go(n=1))
            router.publish(Go(n=2))
            router.publish(Stop())
        assert living_tasks() == tasks
        assert trio.lowlevel.current_statistics().tasks_runnable == runnable
    assert order == [1, 10, 2, 20]


async def test_the_order_of_a_publication():
    """Interrupts, then gates, then observers, then chains in the order of writing, then sinks."""
    order = []

    def rule(word):
        return lambda m: order.append(word) or isinstance(m.event, Stop)

    async with open_router() as router:
        router.add_sink(lambda m: order.append("sink"), Stop)
        router.on(Stop).map(lambda m: order.append("first"))
        route = (
            router.on(Go).pause_on(rule("pause")).interrupt_on(rule("interrupt")).stream(forever)
        )
        router.observe(Stop, lambda m: order.append("observer"))
        router.on(Stop).map(lambda m: order.append("second"))
        router.publish(Go())
        (run,) = router.runtime(route).runs
        order.clear()
        router.publish(Stop())
        assert run.is_cut
    assert order == ["interrupt", "pause", "observer", "first", "second", "sink"]


async def test_subclasses_and_classes_of_the_user_are_routed():
    """A route on a class hears of its subclasses; pydantic models and dataclasses are routed."""
    got = []
    async with open_router() as router:
        router.on(Go).map(lambda m: got.append(type(m.event)))
        router.on(Mine, weight=2).map(lambda m: Frame(b"x")).broadcast()
        router.on(Frame, pcm=b"x").map(lambda m: got.append(m.event))
        router.publish(GoFast())
        router.publish(Mine(weight=1))
        router.publish(Mine(weight=2))
    assert got == [GoFast, Frame(b"x")]


async def test_predicates_that_raise_are_told_and_do_not_match():
    """A fault of a trigger's predicate reaches on_failure, not the publisher."""
    failures, got = [], []
    async with open_router() as router:
        router.listen(failed=lambda run, route, stage, error: failures.append((stage, type(error))))
        router.on(Go, where=lambda m: 1 / 0).map(got.append)
        router.on(lambda m: 1 / 0).map(got.append)
        router.on(Go).map(got.append)
        router.publish(Go())
    assert len(got) == 1
    assert failures == [
        ("on(Go, where=<lambda>)", ZeroDivisionError),
        ("on(<lambda>)", ZeroDivisionError),
    ]


async def test_nothing_that_listens_can_break_a_publication(autojump_clock):
    """Observers and listeners that raise are logged by name; chains and sinks work."""

    def broken(*args):
        raise ValueError("broken")

    got = []
    async with open_router() as router:
        router.observe(Go, broken)
        router.observe(lambda m: 1 / 0, broken)
        router.listen(run_started=broken, run_ended=broken, run_cut=broken, failed=broken)
        router.on(Go).interrupt_on(Stop, handler=broken).stream(forever)
        router.add_sink(got.append)
        with structlog.testing.capture_logs() as logs:
            router.publish(Go())
            await trio.sleep(1)
            router.publish(Stop())
            await trio.sleep(1)
            router.call_after(lambda: None)
        assert len(got) == 2
    assert sorted(line["event"] for line in logs) == [
        "listener_failed", "listener_failed", "listener_failed", "listener_failed",
        "observer_failed", "observer_failed", "observer_failed", "stage_failed",
    ]  # fmt: skip
    assert {line.get("listener", "broken") for line in logs} == {"broken"}


async def test_an_async_observer_is_refused():
    """Observers are called in the step, so they are plain."""

    async def later(message): ...

    async with open_router() as router:
        with pytest.raises(RouteDefinitionError, match="later is async"):
            router.observe(Go, later)


async def test_publishing_after_closing_triggers_nothing(autojump_clock):
    """After the router is closed publishing gives a message, and nothing else happens."""
    got = []

    async def work(message):
        got.append("work")

    async with open_router() as router:
        router.on(Go).map(lambda m: got.append("plain"))
        router.on(Go).map(lambda m: work(m))
        router.on(Go).stream(forever)
        router.observe(Go, got.append)
        router.add_sink(got.append)
        router.add_sink(work)
    message = router.publish(Go(), "caller")
    assert (message.source, message.id) == ("caller", 1)
    assert router.publish_detached(Stop()).id == 2
    assert got == []


async def test_a_held_run_that_is_cut_after_closing_is_harmless():
    """Whoever still holds a run of a closed router may cut and release it."""
    told = []
    async with open_router() as router:
        router.listen(run_ended=lambda run: run.keep())
        route = router.on(Go).interrupt_on(Stop, handler=lambda: told.append(1)).stream([1])
        router.publish(Go())
        await trio.testing.wait_all_tasks_blocked()
        (run,) = router.runtime(route).runs
    assert run.cut()
    run.release()
    assert told == []


async def test_while_closing_no_run_begins(autojump_clock):
    """What clean-ups publish while the router closes reaches sinks and sync chains, not tasks."""
    got, outcomes = [], []

    async def says_goodbye(message):
        try:
            await trio.sleep_forever()
            yield
        finally:
            router.publish(Chunk(n=1))

    async def work(message):
        got.append("work")

    async with open_router() as router:
        router.on(Go).stream(says_goodbye)
        router.on(Chunk).map(lambda m: got.append("plain"))
        dropped = [
            router.on(Chunk).map(work),
            router.on(Chunk).stream(forever),
            router.on(Chunk).map(lambda m: work(m)),
        ]
        inline = router.on(Chunk).interrupt_on(Stop).map(lambda m: work(m))
        router.add_sink(lambda m: got.append("sink"), Chunk)
        router.publish(Go())
        router.listen(run_ended=lambda run: outcomes.append(run.outcome))
        await trio.sleep(1)
    assert got == ["plain", "sink"]
    assert [router.runtime(route).statistics.dropped for route in dropped] == [1, 1, 1]
    assert router.runtime(inline).runs == ()
    assert outcomes == ["shutdown", "shutdown"]


async def test_publish_loops_end():
    """Sync routes that feed one another end in PublishLoopError, told once; the next one works."""
    failures, counted = [], []
    async with open_router() as router:
        router.listen(failed=lambda run, route, stage, error: failures.append(error))
        router.on(Go).map(lambda m: counted.append(1) or Chunk()).broadcast()
        router.on(Chunk).map(lambda m: Go()).broadcast()
        router.publish(Go())
        (error,) = failures
        assert isinstance(error, PublishLoopError)
        assert str(error) == (
            f"'rr.go' was published {DEPTH_LIMIT} levels deep by sync routes that trigger one "
            "another; filter one of them with where= or source="
        )
        assert len(counted) == DEPTH_LIMIT // 2
        caught = []
        router.listen(caught=caught.append)
        router.publish(Go())
        assert [type(error) for error in caught] == [PublishLoopError]


async def test_publish_loops_that_branch_end_in_time():
    """A loop that doubles at each level is stopped at the first time that it is too deep."""
    failures = []
    async with open_router() as router:

        def twice(message):
            router.publish(Go())
            router.publish(Go())

        router.listen(failed=lambda run, route, stage, error: failures.append(stage))
        router.on(Go).map(twice)
        router.on(Go).map(twice)
        router.publish(Go())
        published = router.statistics.published
        assert published < 200
        assert 0 < len(failures) < 100


async def test_failures_can_be_published(autojump_clock):
    """on_failure may publish, also for a loop; a failure that comes of that is only logged."""
    got = []
    async with open_router() as router:
        router.listen(failed=lambda run, route, stage, error: router.publish_detached(Stop()))
        router.on(Go).map(lambda m: router.publish(Go()))
        router.on(Stop).map(lambda m: 1 / 0)
        router.add_sink(lambda m: got.append(type(m.event)), Stop)
        with structlog.testing.capture_logs() as logs:
            router.publish(Go())
    assert got == [Stop]
    assert [(line["event"], line["error"]) for line in logs] == [
        ("stage_failed", "PublishLoopError"),
        ("stage_failed", "ZeroDivisionError"),
    ]


async def test_sinks_that_loop_are_stopped():
    """A sink that publishes what it gets is stopped as well."""
    got = []
    async with open_router() as router:
        router.add_sink(lambda m: got.append(1) or router.publish(Go()), Go)
        with structlog.testing.capture_logs() as logs:
            router.publish(Go())
    assert len(got) == DEPTH_LIMIT
    assert logs[0]["event"] == "sink_failed"


async def test_call_after():
    """Functions are called once, after the publication under way; at once if there is none."""
    order = []
    async with open_router() as router:

        def tidy():
            order.append("after")

        def step(message):
            router.call_after(tidy)
            router.call_after(tidy)
            order.append("step")

        router.on(Go).map(step)
        router.on(Go).map(lambda m: order.append("other"))
        router.publish(Go())
        assert order == ["step", "other", "after"]
        router.call_after(tidy)
        assert order[3:] == ["after"]


async def test_removing_a_source(autojump_clock):
    """The chains of a source that left begin no more; what runs can still be cut, and ends."""
    seen = []
    async with open_router() as router:
        gone = router.on(Go, name="a").interrupt_on(Stop).stream(forever)
        idle = router.on(Go, name="a").map(lambda m: seen.append("a"))
        router.on(Go, name="b").map(lambda m: seen.append("b"))
        router.publish(Go())
        await trio.sleep(1)
        runtime, idle_runtime = router.runtime(gone), router.runtime(idle)
        router.publish(Go())
        assert runtime.statistics.started == 1
        router.remove("a")
        assert runtime.statistics.dropped == 1  # the trigger that waited
        assert len(router.routes) == 1
        router.publish(Go())
        assert seen == ["a", "b", "a", "b", "b"]
        (run,) = runtime.runs
        router.publish(Stop())
        assert run.is_cut
        await trio.sleep(1)
        assert runtime.runs == ()
        assert runtime.statistics.started == 1
        assert idle_runtime.removed
        with pytest.raises(KeyError):
            router.runtime(gone)


async def test_a_chain_removed_in_the_middle_of_a_publication():
    """A chain that is taken away by an earlier one in the same step does not trigger."""
    seen = []
    async with open_router() as router:
        router.on(Go, name="a").map(lambda m: router.remove("b"))
        router.on(Go, name="b").map(lambda m: seen.append("b"))
        router.publish(Go())
    assert seen == []


async def test_a_removed_chain_with_a_held_run_is_forgotten_when_released(autojump_clock):
    """A held run of a chain that left stays interruptible until it is released or cut."""
    async with open_router() as router:
        for how in ("release", "cut"):
            router.listen(run_ended=lambda run: run.keep())
            route = router.on(Go, name=how).interrupt_on(Stop).stream([1])
            router.publish(Go())
            await trio.sleep(1)
            runtime = router.runtime(route)
            (run,) = runtime.runs
            router.remove(how)
            if how == "release":
                run.release()
            else:
                router.publish(Stop())
                assert run.is_cut
            assert runtime.runs == ()


async def test_messages_that_became_stale_on_their_way_are_counted():
    """A chunk whose run an observer cuts is kept from the sinks, and counted."""
    got = []

    async def stream(message):
        yield Chunk()

    async with open_router() as router:
        router.on(Go).interrupt_on(Stop).stream(stream).broadcast()
        router.observe(Chunk, lambda message: message.run.cut())
        router.add_sink(got.append, Chunk)
        router.publish(Go())
        await trio.testing.wait_all_tasks_blocked()
        assert got == []
        assert router.statistics.stale == 1


async def test_an_event_that_cuts_its_own_run_is_not_lost():
    """It goes on to chains and sinks, as an event of no run; what its run gives next does not."""
    got = []

    async def stream(message):
        yield Chunk(n=1)
        yield Stop()
        yield Chunk(n=2)

    async with open_router() as router:
        route = router.on(Go).interrupt_on(Stop).stream(stream).broadcast()
        router.on(Stop).map(lambda m: Chunk(n=3)).broadcast()
        router.add_sink(lambda m: got.append((m.alias, m.run is None, m.is_stale)), Stop)
        router.add_sink(lambda m: got.append(m.event.n), Chunk)
        router.publish(Go())
        await trio.testing.wait_all_tasks_blocked()
        assert got == [1, 3, ("rr.stop", True, False)]
        assert router.runtime(route).statistics.cut == 1
        assert router.statistics.stale == 0


async def test_leaving_ends_everything(autojump_clock):
    """Leaving the block ends all runs, sinks and deadlines at once; no task is left."""
    before = living_tasks()

    async def sink(message):
        await trio.sleep(50)

    async with open_router() as router:
        router.add_sink(sink)
        router.on(Go).interrupt_on(Stop).stream(forever)
        router.publish(Go())
        await trio.sleep(1)
        router.publish(Stop())
        router.publish(Go())
        await trio.sleep(1)
    assert trio.current_time() == 2
    assert living_tasks() == before


async def test_deadlines_are_kept_one_by_one(autojump_clock):
    """Two runs that do not unwind are abandoned each at its own deadline."""
    ends = []

    async def slow(message):
        try:
            await trio.sleep_forever()
            yield
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(50)

    async with open_router(unwind_s=1) as router:
        router.listen(run_ended=lambda run: ends.append(trio.current_time()))
        router.on(Go, n=1).interrupt_on(Stop).stream(slow)
        router.on(Go, n=2).interrupt_on(Chunk).stream(slow)
        router.publish(Go(n=1))
        router.publish(Go(n=2))
        await trio.sleep(1)
        router.publish(Stop())
        await trio.sleep(0.5)
        router.publish(Chunk())
        await trio.sleep(5)
        assert ends == [2, 2.5]


@pytest.mark.parametrize("stage", ["map", "stream"])
async def test_a_cut_starts_no_task(stage):
    """All that a cut needs was started with the run: nothing shares the step with the node."""
    async with open_router() as router:
        route = router.on(Go).interrupt_on(Stop)
        route.stream(forever) if stage == "stream" else route.map(lambda m: anext(forever(m)))
        router.publish(Go())
        await trio.testing.wait_all_tasks_blocked()
        tasks = living_tasks()
        router.publish(Stop())
        assert living_tasks() == tasks
