"""A failure that goes on is told once and counted; once its stage has worked it is told again."""

import pytest
import structlog.testing
import trio
import trio.testing

from bargein.routes import open_router

from .events import Chunk, Go, Stop


class Moody:
    """A function that raises while it is told to."""

    def __init__(self):
        self.error = ValueError("broken")
        self.calls = 0

    def __call__(self, value):
        self.calls += 1
        if self.error is not None:
            raise self.error
        return value


class Told:
    """What a router tells of failures, and what it logs."""

    def __init__(self, router, logs):
        self.failures = []
        self.logs = logs
        router.listen(failed=lambda run, route, stage, error: self.failures.append(error))

    def lines(self, event):
        return [line for line in self.logs if line["event"] == event]


async def frames(router, number=50, event=Go):
    """Publish as ears do: fifty a second."""
    for _ in range(number):
        router.publish(event())
        await trio.sleep(0.02)


def nothing(message):
    """Give nothing, and so nothing to the stages that follow."""


async def waits(message):
    await trio.sleep(0.001)
    return message


async def streams(message):
    await trio.sleep(0.001)
    yield message


# Where the stage that fails stands in its chain.
CHAINS = {
    "alone": lambda route, moody: route.map(moody),
    "gives nothing": lambda route, moody: route.map(lambda m: moody(m) and None),
    "a filter": lambda route, moody: route.filter(moody),
    "behind one of the same name": lambda route, moody: (
        route.map(lambda m: m).map(lambda m: moody(m))
    ),
    "before a stage that waits": lambda route, moody: route.map(moody).map(waits),
    "behind a stage that waits": lambda route, moody: route.map(waits).map(moody),
    "behind a stream": lambda route, moody: route.stream(streams).map(moody),
    "gives something to await": lambda route, moody: route.map(lambda m: waits(moody(m))),
    "awaited": lambda route, moody: route.map(lambda m: later(moody)),
    "between two that wait": lambda route, moody: route.map(waits).map(moody).map(waits),
    "streamed": lambda route, moody: route.stream(lambda m: iter([moody(m)])),
    "with rules": lambda route, moody: route.interrupt_on(Stop).map(moody),
}  # fmt: skip


async def later(moody):
    await trio.sleep(0.001)
    return moody(1)


@pytest.mark.parametrize("build", CHAINS.values(), ids=CHAINS)
async def test_a_stage_that_fails_on_each_message_is_told_once(build, autojump_clock):
    """One line and one call of on_failure; a count when it works again; then it is news again."""
    moody = Moody()
    with structlog.testing.capture_logs() as logs:
        async with open_router() as router:
            told = Told(router, logs)
            build(router.on(Go), moody)
            await frames(router)
            await trio.sleep(1)
            assert len(told.failures) == len(told.lines("stage_failed")) == 1
            failed = moody.calls
            assert failed >= 49, "it is tried each time"
            moody.error = None
            await frames(router)
            await trio.sleep(1)
            (line,) = told.lines("works_again")
            assert line["withheld"] == failed - 1
            assert line["route"] == told.lines("stage_failed")[0]["route"]
            assert line["stage"] == told.lines("stage_failed")[0]["stage"]
            moody.error = ValueError("broken once more")
            await frames(router)
            await trio.sleep(1)
            assert len(told.failures) == 2
    assert len(told.lines("never_worked_again")) == 1


async def test_a_filter_of_an_event_that_fails_is_told_once(autojump_clock):
    """What decides whether a chain is triggered is no stage, and treated like one."""
    moody = Moody()
    with structlog.testing.capture_logs() as logs:
        async with open_router() as router:
            told = Told(router, logs)
            router.on(Go, where=moody).map(nothing)
            await frames(router)
            assert len(told.failures) == 1
            moody.error = None
            await trio.sleep(1)
            await frames(router)
            assert [line["withheld"] for line in told.lines("works_again")] == [49]


async def test_messages_that_do_not_reach_a_stage_do_not_prove_that_it_works(autojump_clock):
    """A filter in front lets only some messages through; those all fail."""
    with structlog.testing.capture_logs() as logs:
        async with open_router() as router:
            told = Told(router, logs)
            router.on(Go).filter(lambda m: m.event.n).map(Moody())
            for _ in range(20):
                router.publish(Go(n=1))
                await trio.sleep(2)
                router.publish(Go(n=0))
                await trio.sleep(2)
    assert len(told.failures) == 1


async def test_a_stage_that_fails_now_and_then_does_not_work(autojump_clock):
    """Every other frame fails: that is told once too, and counted."""
    with structlog.testing.capture_logs() as logs:
        async with open_router() as router:
            told = Told(router, logs)
            turns = iter(range(1000))
            router.on(Go).map(lambda m: 1 / (next(turns) % 2))
            await frames(router, 200)
    assert len(told.failures) == 1
    assert [line["withheld"] for line in told.lines("never_worked_again")] == [99]


async def test_each_kind_of_failure_is_told(autojump_clock):
    """Another class of error, another stage and another chain are news."""
    with structlog.testing.capture_logs() as logs:
        async with open_router() as router:
            told = Told(router, logs)
            moody, other = Moody(), Moody()
            router.on(Go).map(moody)
            router.on(Go).map(moody)
            router.on(Go).map(lambda m: m).map(other)
            await frames(router, 10)
            assert len(told.failures) == 3
            moody.error = KeyError("another")
            await frames(router, 10)
            assert len(told.failures) == 5


async def test_an_answer_that_fails_is_told_each_time(autojump_clock):
    """Somebody waits for each answer, so each that fails is told."""

    async def fails(message):
        await trio.sleep(0.01)
        raise ValueError("no model")
        yield

    with structlog.testing.capture_logs() as logs:
        async with open_router() as router:
            told = Told(router, logs)
            router.on(Go).interrupt_on(Stop).stream(fails).broadcast()
            for _ in range(3):
                router.publish(Go())
                await trio.sleep(0.1)
    assert len(told.failures) == len(told.lines("stage_failed")) == 3


@pytest.mark.parametrize("kind", ["sink", "async sink", "observer"])
async def test_a_listener_that_fails_on_each_message_is_told_once(kind, autojump_clock):
    """Sinks and observers are told like stages; each for itself."""
    moody, moody_too = Moody(), Moody()

    async def later_moody(message):
        moody(message)

    event = "observer_failed" if kind == "observer" else "sink_failed"
    with structlog.testing.capture_logs() as logs:
        async with open_router() as router:
            told = Told(router, logs)
            if kind == "observer":
                router.observe(Chunk, moody)
                router.observe(Chunk, moody_too)
            else:
                router.add_sink(moody if kind == "sink" else later_moody, Chunk)
                router.add_sink(moody_too, Chunk)
            await frames(router, event=Chunk)
            assert len(told.lines(event)) == 2
            moody.error = None
            await trio.sleep(1)
            await frames(router, event=Chunk)
            (line,) = told.lines("works_again")
            assert line["withheld"] == 49
            moody.error = ValueError("once more")
            await frames(router, event=Chunk)
            assert len(told.lines(event)) == 3
