"""What interrupts, pauses, resumes and suspends."""

from typing import Literal

import pytest
import trio
import trio.testing

from bargein.routes import Event, InterruptToken, RouteDefinitionError, open_router


class Go(Event):
    type: Literal["rl.go"] = "rl.go"
    hard: bool = False


class Stop(Event):
    type: Literal["rl.stop"] = "rl.stop"
    button: str = ""


class Halt(Event):
    type: Literal["rl.halt"] = "rl.halt"


class On(Event):
    type: Literal["rl.on"] = "rl.on"


class Chunk(Event):
    type: Literal["rl.chunk"] = "rl.chunk"
    n: int = 0


async def count(message):
    """Gives a chunk each second."""
    for n in range(5):
        await trio.sleep(1)
        yield Chunk(n=n)


def chunks_of(router):
    got = []
    router.add_sink(lambda message: got.append((trio.current_time(), message.event.n)), Chunk)
    return got


def verdicts(router, route):
    return [decision.verdict for decision in router.runtime(route).decisions]


@pytest.mark.parametrize(
    "spec",
    [Stop, [Halt, Stop], (Stop, Halt), "rl.stop", "rl.st*", lambda m: isinstance(m.event, Stop)],
    ids=["class", "list", "tuple", "alias", "pattern", "predicate"],
)
async def test_everything_that_can_interrupt(spec, autojump_clock):
    """A class, list, tuple, alias, pattern or predicate interrupts, in the step of publication."""
    async with open_router() as router:
        route = router.on(Go).interrupt_on(spec).stream(count).broadcast()
        got = chunks_of(router)
        router.publish(Go())
        await trio.sleep(2.5)
        (run,) = router.runtime(route).runs
        router.publish(Stop())
        assert run.is_cut
        await trio.sleep(5)
        assert got == [(1, 0), (2, 1)]
        assert run.outcome == "interrupted"


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("takes", [0, 1, 2])
async def test_handlers_take_what_they_like(takes, is_async, autojump_clock):
    """A handler, sync or async, takes nothing, the message, or message and interruption."""
    calls = []
    plain = [
        lambda: calls.append(()),
        lambda message: calls.append((message,)),
        lambda message, interruption: calls.append((message, interruption)),
    ][takes]

    async def handler0():
        await trio.sleep(0.5)
        plain()

    async def handler1(message):
        await trio.sleep(0.5)
        plain(message)

    async def handler2(message, interruption):
        await trio.sleep(0.5)
        plain(message, interruption)

    handler = [handler0, handler1, handler2][takes] if is_async else plain
    async with open_router() as router:
        route = router.on(Go, name="agent").interrupt_on(Stop, handler=handler).stream(count)
        router.publish(Go())
        await trio.sleep(1.5)
        message = router.publish(Stop())
        assert calls == []  # not before the run has unwound
        await trio.sleep(1)
        (call,) = calls
        assert len(call) == takes
        if takes >= 1:
            assert call[0] is message
        if takes == 2:
            told = call[1]
            assert (told.run, told.source, told.cause) == (1, "agent", message)
            assert (told.phase, told.at_s, told.elapsed_s) == ("running", 1.5, 1.5)
            assert told.route == str(route)
            assert told.reason.startswith("interrupt_on(Stop, handler=")


@pytest.mark.parametrize("event", [Stop, [Halt, Stop], "rl.st*", lambda m: m.event == Stop()])
@pytest.mark.parametrize("rule", ["interrupt_on", "suspend_on"])
async def test_the_handler_is_the_second_argument(rule, event, autojump_clock):
    """What comes after the event is the handler, whatever the event is given as."""
    told = []
    async with open_router() as router:
        chain = router.on(Go)
        getattr(chain, rule)(event, lambda m: told.append(m.event)).stream(count)
        router.publish(Go())
        await trio.sleep(1.5)
        router.publish(Stop())
        await trio.testing.wait_all_tasks_blocked()
    assert told == [Stop()]


async def test_handlers_are_methods_too(autojump_clock):
    """A bound method is a handler like any other, and prints as such."""

    class Node:
        def __init__(self):
            self.called = 0

        async def on_interrupt(self):
            self.called += 1

    node = Node()
    async with open_router() as router:
        route = router.on(Go).interrupt_on(Stop, handler=node.on_interrupt).stream(count)
        assert repr(route).startswith("bridge.on(Go).interrupt_on(Stop, handler=Node.on_interrupt)")
        router.publish(Go())
        await trio.sleep(1)
        router.publish(Stop())
        await trio.sleep(1)
    assert node.called == 1


async def test_the_condition_decides_in_the_same_step(autojump_clock):
    """A condition that says no keeps the run going, and the log says so."""
    asked = []

    def loud(message):
        asked.append(message.event.button)
        return message.event.button == "#"

    async with open_router() as router:
        route = router.on(Go).interrupt_on(Stop, condition=loud).stream(count).broadcast()
        got = chunks_of(router)
        router.publish(Go())
        await trio.sleep(1.5)
        router.publish(Stop(button="1"))
        await trio.sleep(1)
        router.publish(Stop(button="#"))
        await trio.sleep(5)
        assert got == [(1, 0), (2, 1)]
        assert asked == ["1", "#"]
        gated = router.runtime(route).decisions[1]
        assert (gated.verdict, gated.why) == (
            "gated",
            "interrupt_on(Stop, condition=loud): the condition was False",
        )


async def test_a_condition_keeps_triggers_that_wait(autojump_clock):
    """What a condition keeps from interrupting does not drop the triggers that wait either."""
    told = []

    async def slow_clean_up(message):
        told.append(message.event.hard)
        try:
            await trio.sleep(10)
            yield Chunk()
        finally:
            with trio.move_on_after(0.5, shield=True):
                await trio.sleep(0.4)

    async with open_router() as router:
        (
            router.on(Go)
            .interrupt_on(Stop)
            .interrupt_on(Halt, condition=lambda m: False)
            .stream(slow_clean_up)
        )
        router.publish(Go())
        await trio.sleep(1)
        router.publish(Stop())
        await trio.sleep(0.1)
        router.publish(Go(hard=True))
        router.publish(Halt())
        await trio.sleep(1)
        assert told == [False, True]


@pytest.mark.parametrize("how", ["raises", "gives a coroutine"])
async def test_a_broken_condition_interrupts(how, autojump_clock):
    """A condition that raises, or gives no answer, errs on the side of silence and is reported."""
    failures = []

    async def later():
        return False

    def condition(message):
        if how == "raises":
            raise ValueError("broken")
        return later()

    async with open_router() as router:
        router.listen(failed=lambda run, route, stage, error: failures.append((stage, error)))
        router.on(Go).interrupt_on(Stop, condition=condition).stream(count)
        router.publish(Go())
        await trio.sleep(1)
        router.publish(Stop())
        await trio.sleep(1)
        ((stage, error),) = failures
    assert stage == "interrupt_on(Stop, condition=condition)"
    assert isinstance(error, ValueError if how == "raises" else TypeError)


async def test_a_condition_is_not_asked_when_nothing_runs(autojump_clock):
    """Idle needs no condition: nothing would be interrupted anyway."""
    async with open_router() as router:
        route = router.on(Go).interrupt_on(Stop, condition=lambda: 1 / 0).stream(count)
        router.publish(Stop())
        assert verdicts(router, route) == ["idle"]


async def test_filters_and_sources_of_rules(autojump_clock):
    """A rule takes field filters and `source=` like a trigger."""
    async with open_router() as router:
        route = (
            router.on(Go).interrupt_on(Stop, source="caller", button="5").stream(count).broadcast()
        )
        got = chunks_of(router)
        router.publish(Go())
        await trio.sleep(1.5)
        router.publish(Stop(button="4"), "caller")
        router.publish(Stop(button="5"), "agent")
        await trio.sleep(1)
        router.publish(Stop(button="5"), "caller")
        await trio.sleep(5)
        assert got == [(1, 0), (2, 1)]
        assert "interrupt_on(Stop, button='5', source='caller')" in repr(route)


async def test_a_broken_predicate_is_reported_and_interrupts_nothing(autojump_clock):
    """A rule whose predicate raises does not match; publishing goes on."""
    failures = []
    async with open_router() as router:
        router.listen(failed=lambda run, route, stage, error: failures.append(stage))
        router.on(Go).interrupt_on(Stop, button=lambda b: 1 / 0).stream(count).broadcast()
        got = chunks_of(router)
        router.publish(Go())
        await trio.sleep(1.5)
        router.publish(Stop())
        await trio.sleep(5)
        assert len(got) == 5
        assert failures == ["interrupt_on(Stop, button=<lambda>)"]


async def test_pause_and_resume_in_place(autojump_clock):
    """A paused run stops at its next value and goes on from there; nothing is lost."""
    async with open_router() as router:
        route = router.on(Go).pause_on(Halt).resume_on(On).stream(count).broadcast()
        got = chunks_of(router)
        router.publish(Go())
        await trio.sleep(1.5)
        router.publish(Halt())
        (run,) = router.runtime(route).runs
        assert run.is_paused
        await trio.sleep(8.5)
        router.publish(On())
        assert not run.is_paused
        await trio.sleep(10)
        assert got == [(1, 0), (10, 1), (11, 2), (12, 3), (13, 4)]
        assert verdicts(router, route) == ["matched", "paused", "resumed"]
        router.publish(Halt())
        router.publish(On())
        assert verdicts(router, route)[3:] == ["idle", "idle"]


async def test_a_paused_run_can_be_cut(autojump_clock):
    """An interrupt ends a paused run at once."""
    async with open_router() as router:
        route = router.on(Go).interrupt_on(Stop).pause_on(Halt).stream(count).broadcast()
        got = chunks_of(router)
        router.publish(Go())
        router.publish(Halt())
        await trio.sleep(3)
        (run,) = router.runtime(route).runs
        router.publish(Stop())
        await trio.testing.wait_all_tasks_blocked()
        assert run.outcome == "interrupted"
        assert got == []


@pytest.mark.parametrize("where", ["tail generator", "head broadcast"])
async def test_pause_holds_wherever_values_are_made(where, autojump_clock):
    """Generators after a stream, and broadcasts between waiting stages, are held too."""

    async def pair(chunk):
        yield Chunk(n=chunk.n * 10)
        await trio.sleep(0.1)
        yield Chunk(n=chunk.n * 10 + 1)

    async def wait(chunk):
        await trio.sleep(0.5)
        return chunk

    async with open_router() as router:
        route = router.on(Go).pause_on(Halt).resume_on(On).stream(count)
        if where == "head broadcast":
            route.broadcast().map(wait)
        else:
            route.map(lambda chunk: pair(chunk)).broadcast()
        got = chunks_of(router)
        router.publish(Go())
        await trio.sleep(1.05)
        router.publish(Halt())
        await trio.sleep(8.95)
        before = len(got)
        assert before == 1
        router.publish(On())
        await trio.sleep(10)
        assert len(got) == (5 if where == "head broadcast" else 10)
        assert got[1][0] >= 10


async def test_suspend_cuts_and_keeps_from_triggering(autojump_clock):
    """A suspended route is cut, ignores triggers, and works again after the resuming event."""
    cut = []
    async with open_router() as router:
        route = (
            router.on(Go)
            .suspend_on(Halt, handler=lambda: cut.append(trio.current_time()))
            .resume_on(On)
            .stream(count)
            .broadcast()
        )
        got = chunks_of(router)
        router.publish(Go())
        await trio.sleep(1.5)
        router.publish(Halt())
        await trio.sleep(1)
        router.publish(Go())
        await trio.sleep(3.5)
        assert got == [(1, 0)]
        assert cut == [1.5]
        router.publish(On())
        router.publish(Go())
        await trio.sleep(5.5)
        assert [n for _, n in got] == [0, 0, 1, 2, 3, 4]
        assert verdicts(router, route) == [
            "matched", "suspended", "cut", "gated", "resumed", "matched"
        ]  # fmt: skip
        assert router.runtime(route).statistics.dropped == 1


async def test_a_condition_can_keep_from_suspending(autojump_clock):
    """The condition of `suspend_on` is asked also when nothing runs."""
    async with open_router() as router:
        route = router.on(Go).suspend_on(Halt, condition=lambda m: False).stream(count).broadcast()
        got = chunks_of(router)
        router.publish(Halt())
        router.publish(Go())
        await trio.sleep(6)
        assert len(got) == 5
        assert verdicts(router, route) == ["gated", "matched"]


async def test_suspending_a_protected_run_keeps_what_waits(autojump_clock):
    """A protected run goes on; what waits behind it begins after the route is resumed."""
    async with open_router() as router:
        route = router.on(Go).suspend_on(Halt).resume_on(On).stream(count).broadcast()
        got = chunks_of(router)
        router.publish(Go())
        await trio.sleep(0.5)
        (run,) = router.runtime(route).runs
        run.protect()
        run.pause()
        router.publish(Go())
        router.publish(Halt())
        await trio.sleep(1)
        router.publish(On())
        assert not run.is_paused  # one event both resumes the route and releases the run
        router.publish(Halt())
        await trio.sleep(10)
        assert len(got) == 5
        router.publish(On())
        await trio.sleep(10)
        assert len(got) == 10


async def handler_of_three(a, b, c): ...


async def gives(message):
    yield 1


def lists(message):
    yield 1


async def later(message): ...


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda r: r.interrupt_on(5), r"\.interrupt_on\(\) needs an event class"),
        (lambda r: r.interrupt_on(Stop()), r"got an event, .*pass its class, Stop"),
        (lambda r: r.interrupt_on([Stop, Stop]), "names Stop twice"),
        (lambda r: r.interrupt_on(Stop).interrupt_on(Stop), "of this chain already does; merge"),
        (lambda r: r.interrupt_on("rl.go").interrupt_on(["rl.go"]), "names 'rl.go'"),
        (lambda r: r.interrupt_on(Stop).suspend_on(Stop), "already does"),
        (lambda r: r.pause_on(Stop).pause_on(Stop), r"\.pause_on\(\) names Stop"),
        (lambda r: r.resume_on(Stop).resume_on(Stop), r"\.resume_on\(\) names Stop"),
        (lambda r: r.interrupt_on("rl.stopp"), "did you mean 'rl.stop'"),
        (lambda r: r.interrupt_on(Stop, buton="5"), "did you mean 'button'"),
        (lambda r: r.interrupt_on(Stop, button=5), "can never equal Stop.button"),
        (lambda r: r.interrupt_on(Stop, source=5), "source= needs names"),
        (lambda r: r.interrupt_on(Stop, handler=5), "handler= needs a function, not 5"),
        (
            lambda r: r.interrupt_on(Stop, Halt),
            r"not the class Halt; .* tuple: \.interrupt_on\(\(\.\.\., Halt\)\)",
        ),
        (lambda r: r.suspend_on(Stop, Halt), r"tuple: \.suspend_on\(\(\.\.\., Halt\)\)"),
        (lambda r: r.interrupt_on(Stop, condition=Halt), "condition= needs .*, not the class Halt"),
        (lambda r: r.interrupt_on(Stop, handlr=gives), "did you mean 'handler'"),
        (lambda r: r.interrupt_on(Stop, handler=handler_of_three), "nothing, the message, or"),
        (lambda r: r.interrupt_on(Stop, handler=gives), "gives is a generator"),
        (lambda r: r.interrupt_on(Stop, condition=later), "condition= must be a plain function"),
        (lambda r: r.interrupt_on(Stop, condition=lists), "lists is a generator, which is always"),
        (lambda r: r.interrupt_on(Stop, condition=5), "condition= needs a function, not 5"),
        (lambda r: r.interrupt_on(Stop, condition=lambda a, b: 0), "the message, or nothing"),
        (lambda r: r.interrupt_on(Stop, handler=later(0)), "without calling it"),
        (lambda r: r.suspend_on(Stop, handler=5), r"\.suspend_on\(\) handler="),
        (lambda r: r.pause_on(5), r"\.pause_on\(\) needs an event class"),
        (lambda r: r.resume_on(Halt, n=1), "Halt has no field 'n'"),
    ],
)
async def test_mistakes_are_told_when_written(build, message):
    """A rule that can never work is refused when it is written, with the fix."""
    async with open_router() as router:
        route = router.on(Go)
        with pytest.raises(RouteDefinitionError, match=message):
            build(route)


async def test_the_same_event_twice_with_filters_is_fine():
    """Rules that differ in their filters are no duplicates."""
    async with open_router() as router:
        route = router.on(Go).interrupt_on(Stop, button="1").interrupt_on(Stop, button="2")
        route = route.pause_on(Stop).resume_on(Halt)
        assert repr(route) == (
            "bridge.on(Go).interrupt_on(Stop, button='1').interrupt_on(Stop, button='2')"
            ".pause_on(Stop).resume_on(Halt)"
        )


async def test_a_run_has_a_token(autojump_clock):
    """Asking a run's token cuts it, and its handler is told as of any cut."""
    told = []
    async with open_router() as router:
        handler = lambda m, i: told.append((m, i.reason))  # noqa: E731 - reads as a table
        route = router.on(Go).interrupt_on(Stop, handler=handler).stream(count)
        router.publish(Go())
        await trio.sleep(1)
        (run,) = router.runtime(route).runs
        assert isinstance(run.token, InterruptToken)
        run.token.request()
        await trio.sleep(1)
    assert told == [(None, "its token was asked")]
