"""One run: cut, hold, protect, link, pause, stop."""

from typing import Literal

import pytest
import trio

from bargein.routes import Event, Interrupted, current_run, open_router


class Go(Event):
    type: Literal["rn.go"] = "rn.go"


class Stop(Event):
    type: Literal["rn.stop"] = "rn.stop"


class Chunk(Event):
    type: Literal["rn.chunk"] = "rn.chunk"
    n: int = 0


class Said(Event):
    type: Literal["run.said"] = "run.said"


class Echo(Event):
    type: Literal["rn.echo"] = "rn.echo"


async def count(message):
    for n in range(5):
        await trio.sleep(1)
        yield Chunk(n=n)


async def forever(message):
    await trio.sleep_forever()
    yield


async def test_a_run_tells_what_it_is(autojump_clock):
    """A run knows its number, source, trigger, start and state."""
    async with open_router() as router:
        route = router.on(Go, name="agent").stream(count).broadcast()
        await trio.sleep(2)
        message = router.publish(Go())
        (run,) = router.runtime(route).runs
        assert (run.id, run.source, run.trigger, run.started_at_s) == (1, "agent", message, 2)
        assert run.is_running
        assert run.parent is None
        assert repr(run) == f"<Run 1 running of {route!r}>"
        await run.finished()
        assert trio.current_time() == 7
        assert not run.is_running
        assert run.trigger is None
        assert repr(run) == f"<Run 1 completed of {route!r}>"
        await run.finished()
        assert not run.cut()
        assert run.outcome == "completed"


async def test_a_run_is_cut_once(autojump_clock):
    """Cutting twice is cutting once; the reason is told."""
    async with open_router() as router:
        route = router.on(Go).stream(forever)
        router.publish(Go())
        await trio.sleep(1)
        (run,) = router.runtime(route).runs
        assert run.cut(reason="by hand")
        assert not run.cut()
        assert run.interruption.reason == "by hand"
        await run.finished()
        assert repr(run).startswith("<Run 1 cut of")


async def test_current_run_is_known_in_every_stage():
    """Code of a stage can ask for whom it works; outside of runs there is nobody."""
    seen = []

    async def stream(message):
        seen.append(current_run())
        yield 1

    async with open_router() as router:
        route = (
            router.on(Go)
            .interrupt_on(Stop)
            .stream(stream)
            .map(lambda v: seen.append(current_run()))
        )
        inline = router.on(Go).interrupt_on(Stop).map(lambda m: seen.append(current_run()))
        router.publish(Go())
        assert current_run() is None
        await trio.testing.wait_all_tasks_blocked()
        assert router.runtime(inline).runs == ()
        assert router.runtime(route).statistics.started == 1
    assert [run.id for run in seen] == [2, 1, 1]


async def test_what_a_run_publishes_belongs_to_it(autojump_clock):
    """Publishing from within a stage, or a task of it, makes a message of that run."""
    messages = []

    async def stream(message):
        messages.append(router.publish(Chunk(n=1)))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(in_task)
        messages.append(router.publish_detached(Chunk(n=3)))
        yield Chunk(n=4)

    async def in_task():
        messages.append(router.publish(Chunk(n=2)))

    async with open_router() as router:
        router.on(Go).stream(stream).broadcast()
        router.add_sink(lambda m: messages.append(m) if m.event.n == 4 else None, Chunk)
        router.publish(Go())
        await trio.testing.wait_all_tasks_blocked()
    assert [m.run and m.run.id for m in messages] == [1, 1, None, 1]


async def test_stale_is_what_descends_from_a_cut_run(autojump_clock):
    """What runs below a cut run publish is dropped and counted; what came before stays."""
    got = []

    async def echo(message):
        await trio.sleep(0.25)
        yield Echo()
        await trio.sleep(0.5)
        yield Echo()

    async with open_router() as router:
        router.on(Go).interrupt_on(Stop).stream(count).broadcast()
        route = router.on(Chunk).stream(echo).broadcast()
        router.add_sink(lambda m: got.append((trio.current_time(), m.event.type)))
        router.publish(Go())
        await trio.sleep(1.5)
        (below,) = router.runtime(route).runs
        router.publish(Stop())
        assert below.is_stale
        assert not below.is_cut
        await trio.sleep(5)
        assert below.outcome == "completed"  # it was not linked
        assert router.statistics.stale == 1
    assert got == [(0, "rn.go"), (1, "rn.chunk"), (1.25, "rn.echo"), (1.5, "rn.stop")]


async def test_a_linked_run_ends_with_its_cause(autojump_clock):
    """`linked=True`: a run is cut with the run that caused it, and its handler is told."""
    told = []
    async with open_router() as router:
        router.on(Go).interrupt_on(Stop).stream(count).broadcast()
        route = (
            router.on(Chunk, linked=True, overlap="concurrent")
            .interrupt_on(Echo, handler=lambda m, i: told.append((i.run, i.reason)))
            .stream(forever)
        )
        router.publish(Go())
        await trio.sleep(2.5)
        runs = router.runtime(route).runs
        stop = router.publish(Stop())
        assert [run.is_cut for run in runs] == [True, True]
        assert runs[0].interruption.cause is stop
        await trio.sleep(1)
        assert [run.outcome for run in runs] == ["interrupted"] * 2
        assert sorted(told) == [(run.id, "what it was caused by was cut") for run in runs]
        router.publish(Chunk())  # caused by no run: nothing to be linked to
        await trio.sleep(1)
        assert len(router.runtime(route).runs) == 1


async def test_a_held_run_stays_interruptible(autojump_clock):
    """A run that has finished can be cut while somebody keeps it, and its handler is called."""
    told = []
    async with open_router() as router:
        router.listen(run_ended=lambda run: run.keep())
        route = router.on(Go).interrupt_on(Stop, handler=lambda m, i: told.append(i)).stream(count)
        router.publish(Go())
        await trio.sleep(6)
        (run,) = router.runtime(route).runs
        assert run.outcome == "completed"
        assert not run.is_settled
        router.publish(Stop())
        assert run.outcome == "interrupted"
        assert run.is_stale
        await trio.sleep(1)
        assert [(i.phase, i.at_s, i.elapsed_s) for i in told] == [("delivered", 6, 6)]
        assert router.runtime(route).runs == ()
        router.publish(Stop())
        await trio.sleep(1)
        assert len(told) == 1
        run.release()


async def test_a_released_run_is_settled(autojump_clock):
    """Once nobody keeps a finished run, nothing of it can be cut."""
    async with open_router() as router:
        route = router.on(Go).interrupt_on(Stop).stream(lambda m: [1])
        router.listen(run_ended=lambda run: (run.keep(), run.keep()))
        router.publish(Go())
        await trio.sleep(1)
        (run,) = router.runtime(route).runs
        run.release()
        assert router.runtime(route).runs == (run,)
        run.release()
        assert run.is_settled
        assert router.runtime(route).runs == ()
        assert run.trigger is None
        router.publish(Stop())
        assert run.outcome == "completed"
        assert router.runtime(route).decisions[-1].verdict == "idle"
        run.keep()  # output that turned up late makes it interruptible again
        router.publish(Stop())
        assert run.outcome == "interrupted"


async def test_holds_and_protections_are_counted(autojump_clock):
    """Taking back what was never given is an error."""
    async with open_router() as router:
        route = router.on(Go).stream(forever)
        router.publish(Go())
        (run,) = router.runtime(route).runs
        with pytest.raises(RuntimeError, match=r"is not kept; call keep\(\) before release\(\)"):
            run.release()
        with pytest.raises(RuntimeError, match="is not protected"):
            run.unprotect()


async def test_a_protected_run_is_not_cut_by_rules(autojump_clock):
    """A protected run is gated, until unprotected; what waits behind it stays."""
    async with open_router() as router:
        route = router.on(Go).interrupt_on(Stop).stream(count)
        runtime = router.runtime(route)
        router.publish(Go())
        await trio.sleep(0.5)
        (run,) = runtime.runs
        run.protect()
        run.protect()
        router.publish(Go())
        router.publish(Stop())
        assert run.is_protected
        assert not run.is_cut
        assert runtime.decisions[-1].why == (
            "interrupt_on(Stop): what is being said is not interruptible"
        )
        run.unprotect()
        router.publish(Stop())
        assert not run.is_cut
        await trio.sleep(6)
        assert runtime.statistics.started == 2
        run.unprotect()
        assert router.cut_all("for the test") == 1


async def test_a_run_knows_what_would_cut_it(autojump_clock):
    """A rule of its chain would, its condition unasked; another event would not, nor a gate."""
    async with open_router() as router:
        ruled = router.on(Go).interrupt_on(Stop, condition=lambda m: False).pause_on(Said)
        route = ruled.stream(count)
        router.publish(Go())
        (run,) = router.runtime(route).runs
        assert run.may_be_cut_by(Stop)
        assert not run.may_be_cut_by(Said)
        assert not run.may_be_cut_by(Go)


async def test_a_run_knows_that_nothing_would_cut_it(autojump_clock):
    """While it is protected, paused with all, in the background or cut already, no rule would."""
    async with open_router() as router:
        route = router.on(Go, name="agent").interrupt_on(Stop).stream(count)
        router.publish(Go())
        (run,) = router.runtime(route).runs
        run.protect()
        assert not run.may_be_cut_by(Stop)
        run.unprotect()
        router.pause_all("agent")
        assert not run.may_be_cut_by(Stop)
        router.resume_all("agent")
        assert run.may_be_cut_by(Stop)
        run.move_to_background()
        assert not run.may_be_cut_by(Stop)
        router.publish(Go())
        (other,) = (run for run in router.runtime(route).runs if not run.is_in_background)
        router.publish(Stop())
        assert not other.may_be_cut_by(Stop)


async def test_cut_all_cuts_protected_runs_too(autojump_clock):
    """Cutting all is stronger than any protection, and can be kept to one source."""
    told = []
    async with open_router() as router:
        for name in ("a", "b"):
            handler = lambda m, i: told.append((i.source, i.reason, m))  # noqa: E731
            router.on(Go, name=name).interrupt_on(Stop, handler=handler).stream(forever)
        router.publish(Go())
        router.publish(Go())
        await trio.sleep(1)
        for runtime in router.routes:
            runtime.runs[0].protect()
        cause = router.publish(Chunk())
        assert router.cut_all("emergency", "a", cause) == 1
        await trio.sleep(1)
        assert told == [("a", "emergency", cause)]
        assert [runtime.statistics.dropped for runtime in router.routes] == [1, 0]
        assert router.cut_all("emergency") == 1
        await trio.sleep(1)
        assert told[1:] == [("b", "emergency", None)]


async def test_stop_keeps_what_was_given(autojump_clock):
    """A stopped run ends as completed, and what it gave is not stale."""
    got = []
    async with open_router() as router:
        route = router.on(Go).stream(count).broadcast()
        router.add_sink(got.append, Chunk)
        router.publish(Go())
        await trio.sleep(1.5)
        (run,) = router.runtime(route).runs
        run.stop()
        await run.finished()
        assert trio.current_time() == 1.5
        assert run.outcome == "completed"
        assert len(got) == 1
        assert not got[0].is_stale
        run.stop()


async def test_a_run_stopped_before_it_began_never_begins():
    """Stopping a run in the step of its trigger keeps its code from being called."""
    called = []

    async def stream(message):
        called.append(1)
        yield

    async def later():
        called.append(2)

    async with open_router() as router:
        routes = [router.on(Go).stream(stream), router.on(Go).map(lambda m: later())]
        router.publish(Go())
        runs = [router.runtime(route).runs[0] for route in routes]
        for run in runs:
            run.stop()
        await trio.testing.wait_all_tasks_blocked()
        assert [run.outcome for run in runs] == ["completed"] * 2
    assert called == []


async def test_pausing_twice_is_pausing_once(autojump_clock):
    """Pause and resume are idempotent."""
    async with open_router() as router:
        got = []
        route = router.on(Go).stream(count).broadcast()
        router.add_sink(got.append, Chunk)
        router.publish(Go())
        (run,) = router.runtime(route).runs
        run.pause()
        run.pause()
        await trio.sleep(3)
        assert got == []
        run.resume()
        run.resume()
        await trio.sleep(10)
        assert len(got) == 5


async def test_the_token_and_the_scope_are_one(autojump_clock):
    """Asking the token cuts the run, cutting the run asks the token; late tokens are asked."""
    async with open_router() as router:
        route = router.on(Go, overlap="concurrent").stream(forever)
        for _ in range(3):
            router.publish(Go())
        await trio.sleep(1)
        first, second, third = router.runtime(route).runs
        assert first.token is first.token
        first.token.request()
        assert first.is_cut
        token = second.token
        second.cut()
        assert token.is_requested
        third.cut()
        assert third.token.is_requested


async def test_a_thread_cuts_its_run():
    """A token that is asked in a thread cuts the run in trio; and the thread sees a cut."""
    seen = []

    def work(token):
        seen.append(token.is_requested)
        token.request()

    def poll(token):
        while True:
            token.throw_if_requested()

    async def in_thread(message):
        await trio.to_thread.run_sync(work, current_run().token)
        await trio.sleep_forever()
        yield

    async def polls(message):
        yield await trio.to_thread.run_sync(poll, current_run().token)

    failures = []
    async with open_router() as router:
        router.listen(failed=lambda *args: failures.append(args))
        route = router.on(Go).stream(in_thread)
        polling = router.on(Stop).stream(polls)
        router.publish(Go())
        (run,) = router.runtime(route).runs
        await run.finished()
        assert run.is_cut
        assert run.interruption.reason == "its token was asked"
        router.publish(Stop())
        await trio.testing.wait_all_tasks_blocked()
        (run,) = router.runtime(polling).runs
        run.cut()
        await run.finished()
    assert seen == [False]
    assert failures == []  # Interrupted is how polling code ends, no failure


async def test_a_loop_of_a_run_cannot_swallow_a_stop(autojump_clock):
    """Interrupted is no Exception: neither a loop nor a nursery around it keeps a cut run alive."""
    swallowed = []

    async def step(token):
        with trio.CancelScope(shield=True):
            while len(swallowed) < 9:
                try:
                    token.throw_if_requested()
                    await trio.sleep(0.01)
                except Exception as error:  # noqa: BLE001 - what people write
                    swallowed.append(error)

    async def polls(message):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(step, current_run().token)
            nursery.start_soon(step, current_run().token)
        yield

    failures = []
    async with open_router() as router:
        router.listen(failed=lambda *args: failures.append(args))
        route = router.on(Go).stream(polls)
        router.publish(Go())
        await trio.sleep(0.05)
        (run,) = router.runtime(route).runs
        run.cut()
        with trio.fail_after(5):
            await run.finished()
    assert (run.outcome, swallowed, failures) == ("interrupted", [], [])


async def test_interrupted_without_a_cut_is_a_failure():
    """Code that raises Interrupted though nobody asked has failed."""
    failures = []

    def raises(message):
        raise Interrupted("nobody asked")

    async with open_router() as router:
        router.listen(failed=lambda run, *rest: failures.append((run.outcome, rest[-1])))
        router.on(Go).stream(raises)
        router.publish(Go())
        await trio.testing.wait_all_tasks_blocked()
    ((outcome, error),) = failures
    assert outcome == "failed"
    assert error.safe_text == (
        "the code raised Interrupted, but its own work was not asked to stop"
    )


def test_a_token_outlives_its_loop():
    """Asking a run's token after its event loop has ended is harmless."""

    async def main():
        async with open_router() as router:
            route = router.on(Go).stream(forever)
            router.publish(Go())
            return router.runtime(route).runs[0].token

    token = trio.run(main)
    token.request()
    assert token.is_requested


async def test_ancestry_does_not_grow(autojump_clock):
    """Runs that trigger one another keep no chain of those that are over and done with."""

    def depth(run):
        n = 0
        while run is not None:
            n, run = n + 1, run.parent
        return n

    depths = []

    async def ping(message):
        depths.append(depth(current_run()))
        await trio.sleep(0.01)
        yield Echo() if isinstance(message.event, Go) else Go()

    async with open_router() as router:
        router.on(Go).stream(ping).broadcast()
        router.on(Echo).stream(ping).broadcast()
        router.publish(Go())
        await trio.sleep(10)
    assert len(depths) > 900
    assert max(depths) <= 3


async def test_a_linked_run_ends_with_the_cause_of_its_cause(autojump_clock):
    """`linked=True`: a run is cut with any run it descends from, not only with the nearest."""
    async with open_router() as router:
        cut = []
        router.listen(run_cut=lambda run: cut.append(run.written[:20]))

        async def forever(_):
            yield Chunk()
            await trio.sleep_forever()

        async def endless(_):
            await trio.sleep_forever()

        router.on(Go).interrupt_on(Stop).stream(forever).broadcast()
        router.on(Chunk).map(lambda message: iter([Said()])).broadcast()
        router.on(Said, linked=True).map(endless)
        router.publish(Go())
        await trio.testing.wait_all_tasks_blocked()
        router.publish(Stop())
        assert cut == ["bridge.on(Go).interr", "bridge.on(Said, link"]
