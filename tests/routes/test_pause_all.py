"""Pausing everything of a source in place, and runs moved to the background."""

from typing import Literal

import trio

from bargein.routes import Event, current_run, open_router


class Go(Event):
    type: Literal["hd.go"] = "hd.go"
    n: int = 0


class Stop(Event):
    type: Literal["hd.stop"] = "hd.stop"


class Halt(Event):
    type: Literal["hd.halt"] = "hd.halt"


class Free(Event):
    type: Literal["hd.free"] = "hd.free"


class Chunk(Event):
    type: Literal["hd.chunk"] = "hd.chunk"
    n: int = 0


async def every_second(message):
    """Gives a chunk each second, five in all."""
    for n in range(5):
        yield Chunk(n=10 * message.event.n + n)
        await trio.sleep(1)


def chunks_of(router):
    got = []
    router.add_sink(lambda message: got.append((trio.current_time(), message.event.n)), Chunk)
    return got


async def test_paused_runs_go_on_with_the_next_value(autojump_clock):
    """What is paused gives nothing; resumed, it gives what would have come next."""
    async with open_router() as router:
        router.on(Go, name="a").stream(every_second).broadcast()
        got = chunks_of(router)
        router.publish(Go())
        await trio.sleep(1.5)
        router.pause_all("a")
        await trio.sleep(10)
        assert got == [(0, 0), (1, 1)]
        router.resume_all("a")
        await trio.sleep(10)
        assert got == [(0, 0), (1, 1), (11.5, 2), (12.5, 3), (13.5, 4)]


async def test_only_the_source_that_is_meant_is_paused(autojump_clock):
    """Chains of other sources work on."""
    async with open_router() as router:
        router.on(Go, name="b").stream(every_second).broadcast()
        got = chunks_of(router)
        router.pause_all("a")
        router.publish(Go())
        await trio.sleep(10)
        assert len(got) == 5


async def test_triggers_wait_while_everything_is_paused(autojump_clock):
    """Whatever its overlap, a chain begins nothing while paused, and loses no trigger."""
    async with open_router() as router:
        for overlap in ("queue", "restart", "drop", "concurrent"):
            router.on(Go, name="a", overlap=overlap).stream(every_second)
        router.pause_all("a")
        router.publish(Go())
        await trio.sleep(10)
        assert not any(runtime.runs for runtime in router.routes)
        router.resume_all("a")
        await trio.sleep(0.5)
        assert [len(runtime.runs) for runtime in router.routes] == [1, 1, 1, 1]


async def test_no_rule_reaches_what_is_paused(autojump_clock):
    """Interrupts, pauses and resumes of the chain are gated, and the log says why."""
    async with open_router() as router:
        route = router.on(Go, name="a").interrupt_on(Stop).pause_on(Halt).resume_on(Free)
        route = route.stream(every_second)
        router.publish(Go())
        await trio.sleep(0.5)
        router.pause_all("a")
        router.pause_all("a")
        (run,) = router.runtime(route).runs
        for event in (Stop(), Free(), Halt()):
            router.publish(event)
        assert not run.is_cut
        assert run.is_paused
        verdicts = [d.verdict for d in router.runtime(route).decisions]
        assert verdicts == ["matched", "gated", "gated", "gated"]
        router.resume_all("a")
        router.publish(Stop())
        assert run.is_cut


async def test_a_suspension_does_not_half_reach_what_is_paused(autojump_clock):
    """While it is paused, a chain is not suspended: its run and its triggers go on afterwards."""
    async with open_router() as router:
        route = router.on(Go, name="a").suspend_on(Stop).resume_on(Free).stream(every_second)
        router.publish(Go())
        await trio.sleep(0.5)
        router.pause_all("a")
        router.publish(Stop())
        router.publish(Free())
        (run,) = router.runtime(route).runs
        assert not run.is_cut
        verdicts = [d.verdict for d in router.runtime(route).decisions]
        assert verdicts == ["matched", "gated", "gated"]
        router.resume_all("a")
        await trio.sleep(10)
        router.publish(Go())
        assert router.runtime(route).decisions[-1].verdict == "matched"


async def test_a_suspension_can_end_while_everything_is_paused(autojump_clock):
    """A resuming event that comes meanwhile is not lost: afterwards the chain triggers again."""
    async with open_router() as router:
        route = router.on(Go, name="a").suspend_on(Stop).resume_on(Free).stream(every_second)
        router.publish(Stop())
        router.pause_all("a")
        router.publish(Free())
        router.publish(Go())
        assert not router.runtime(route).runs
        router.resume_all("a")
        await trio.sleep(0.5)
        assert len(router.runtime(route).runs) == 1
        verdicts = [d.verdict for d in router.runtime(route).decisions]
        assert verdicts == ["suspended", "idle", "resumed", "queued", "matched"]


async def test_a_run_that_was_paused_before_stays_paused(autojump_clock):
    """Letting everything go does not undo the pause of a chain's own rule."""
    async with open_router() as router:
        route = router.on(Go, name="a").pause_on(Halt).stream(every_second)
        router.publish(Go())
        await trio.sleep(0.5)
        router.publish(Halt())
        router.pause_all("a")
        router.resume_all("a")
        (run,) = router.runtime(route).runs
        assert run.is_paused


async def test_what_is_paused_can_be_cut(autojump_clock):
    """Cutting a source reaches its paused runs, and forgets the triggers that wait."""
    async with open_router() as router:
        route = router.on(Go, name="a").stream(every_second)
        router.publish(Go())
        await trio.sleep(0.5)
        router.pause_all("a")
        router.publish(Go())
        assert router.cut_all("enough", "a") == 1
        router.resume_all("a")
        await trio.sleep(1)
        assert not router.runtime(route).runs


async def test_a_run_in_the_background_frees_its_chain(autojump_clock):
    """The next trigger begins at once; the run goes on to its end, and no rule reaches it."""
    async with open_router() as router:
        route = router.on(Go).interrupt_on(Stop).stream(every_second).broadcast()
        got = chunks_of(router)
        router.publish(Go(n=1))
        await trio.sleep(0.5)
        (first,) = router.runtime(route).runs
        first.move_to_background()
        router.publish(Stop())
        router.publish(Go(n=2))
        await trio.sleep(0.1)
        assert (20 in [n for _, n in got], first.is_cut) == (True, False)
        await trio.sleep(10)
        assert [n for _, n in got if n < 20] == [10, 11, 12, 13, 14]
        assert not router.runtime(route).runs


async def test_a_paused_run_goes_on_in_the_background(autojump_clock):
    """No resuming event could reach it any more, so it continues where it stopped."""
    async with open_router() as router:
        route = router.on(Go).pause_on(Halt).resume_on(Free).stream(every_second).broadcast()
        got = chunks_of(router)
        router.publish(Go())
        await trio.sleep(1.5)
        router.publish(Halt())
        await trio.sleep(10)
        (run,) = router.runtime(route).runs
        run.move_to_background()
        await trio.sleep(10)
        assert got == [(0, 0), (1, 1), (11.5, 2), (12.5, 3), (13.5, 4)]
        assert run.outcome == "completed"


async def test_a_run_in_the_background_ends_with_everything(autojump_clock):
    """Cutting all reaches it, unless it is left out; the router's end does too."""
    async with open_router() as router:
        route = router.on(Go).stream(every_second)
        router.publish(Go())
        await trio.sleep(0.5)
        (run,) = router.runtime(route).runs
        run.move_to_background()
        assert router.cut_all("enough", background=False) == 0
        assert router.cut_all("enough") == 1
        await trio.sleep(0.1)
        assert run.outcome == "interrupted"
    async with open_router() as router:
        route = router.on(Go).stream(every_second)
        router.publish(Go())
        (run,) = router.runtime(route).runs
        await trio.sleep(0.5)
        run.move_to_background()
    assert run.outcome == "shutdown"


async def test_a_node_may_ask_whether_to_go_on(autojump_clock):
    """`may_go_on` waits while the run is paused, and says no once it was cut."""
    answers = []

    async def costly(message):
        try:
            await trio.sleep(1)
        finally:
            with trio.CancelScope(shield=True):
                answers.append((await current_run().may_go_on(), trio.current_time()))
        yield Chunk()

    async with open_router() as router:
        route = router.on(Go, name="a").interrupt_on(Stop).stream(costly)
        router.publish(Go())
        router.pause_all("a")
        await trio.sleep(5)
        assert answers == []
        router.resume_all("a")
        await trio.sleep(5)
        router.publish(Go())
        await trio.sleep(0.5)
        router.publish(Stop())
        await trio.sleep(0.5)
        assert answers == [(True, 5.0), (False, 10.5)]
        assert router.runtime(route).statistics.cut == 1
