"""How stages become code that runs."""

import pytest
import trio

from bargein.routes import open_router
from tests.living import living_tasks
from tests.routes.stages import Go, Hold, Out, out, run_through, values


async def aout(value):
    return Out(value=value)


async def agen(message):
    yield 1
    yield None
    yield 2


def gen(message):
    yield 1
    yield None
    yield 2


async def gives_list(message):
    return [1, 2]


async def gives_agen(message):
    return agen(message)


class AsyncIterable:
    """Has `__aiter__` and no `__anext__`, as streams of some clients do."""

    async def __aiter__(self):
        yield 1
        yield 2


SOURCES = {
    "async generator": agen,
    "generator": gen,
    "function giving a list": lambda m: [1, 2],
    "function giving a tuple": lambda m: (1, 2),
    "async function giving a list": gives_list,
    "async function giving an async generator": gives_agen,
    "lambda giving a coroutine": lambda m: gives_list(m),
    "lambda giving an async generator": lambda m: agen(m),
    "function giving an iterator": lambda m: iter([1, 2]),
    "function giving an async iterable": lambda m: AsyncIterable(),
    "list": [1, 2],
    "iterator": lambda m: iter([1, 2]),
    "function of nothing": lambda: [1, 2],
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("extra", [False, True], ids=["alone", "with a waiting stage"])
async def test_stream_takes_everything(source, extra, autojump_clock):
    """`.stream()` takes functions, generators and iterators of all kinds, alone or in a row."""
    build = lambda route: (  # noqa: E731 - reads as a table
        route.stream(source).map(aout).broadcast()
        if extra
        else route.stream(source).map(out).broadcast()
    )
    got, failures = await run_through(build)
    assert not failures
    assert values(got) == [1, 2]


class Numbers:
    """Can be iterated asynchronously, anew each time."""

    async def __aiter__(self):
        for number in (7, 8):
            yield number


@pytest.mark.parametrize(
    "source", [[7, 8], (7, 8), range(7, 9), Numbers()], ids=lambda source: type(source).__name__
)
async def test_what_can_be_iterated_again_is_given_to_each_trigger(source, autojump_clock):
    """`.stream()` takes a list, or whatever begins anew; every trigger gets all of it."""
    for _ in range(2):
        got, _ = await run_through(lambda route: route.stream(source).map(out).broadcast())
        assert values(got) == [7, 8]


async def test_a_single_value_is_streamed(autojump_clock):
    """A function may give a value instead of an iterator."""
    got, _ = await run_through(lambda route: route.stream(lambda m: 5).map(out).broadcast())
    assert values(got) == [5]


MAPS = {
    "plain": (lambda v: v, [5]),
    "nothing": (lambda v: None, []),
    "a list stays whole": (lambda v: [v, v], [[5, 5]]),
    "lambda giving a generator": (lambda v: gen(v), [1, 2]),
    "lambda giving an async generator": (lambda v: agen(v), [1, 2]),
    "async, a list stays whole": (gives_list, [[1, 2]]),
    "lambda giving a coroutine": (lambda v: gives_list(v), [[1, 2]]),
    "function of nothing": (lambda: 9, [9]),
}


@pytest.mark.parametrize(("fn", "given"), MAPS.values(), ids=MAPS)
@pytest.mark.parametrize("place", ["lead", "tail", "head", "head alone", "between"])
async def test_map_takes_every_function(fn, given, place, autojump_clock):
    """`.map()` gives the same before, after and between stages that wait."""

    async def five(message):
        yield 5

    async def same(value):
        return value

    builds = {
        "lead": lambda route: route.map(lambda m: 5).map(fn).stream(lambda v: [v]),
        "tail": lambda route: route.stream(five).map(fn),
        "head": lambda route: route.stream(five).map(same).map(fn).map(same),
        "head alone": lambda route: route.map(lambda m: 5).map(fn),
        "between": lambda route: route.stream(five).map(fn).filter(lambda v: True).map(same),
    }
    got, failures = await run_through(lambda route: builds[place](route).map(out).broadcast())
    assert not failures
    assert values(got) == given


async def odd(value):
    return value % 2


@pytest.mark.parametrize("fn", [lambda v: v % 2, odd, lambda v: odd(v)])
@pytest.mark.parametrize("place", ["lead", "tail", "head"])
async def test_filter_takes_everything(fn, place, autojump_clock):
    """`.filter()` takes sync and async functions, and lambdas that give a coroutine."""

    async def same(value):
        return value

    def build(route):
        if place == "lead":
            return route.map(lambda m: m.event.n).filter(fn).map(out)
        route = route.stream(lambda m: range(m.event.n, m.event.n + 1)).filter(fn)
        return (route.map(same) if place == "head" else route).map(out)

    got, failures = await run_through(lambda route: build(route).broadcast(), count=4)
    assert not failures
    assert values(got) == [1, 3]


async def test_through_gets_the_whole_stream(autojump_clock):
    """`.through()` sees all values at once, in every form a stage may have."""

    async def pairs(items):
        held = []
        async for item in items:
            held.append(item)
            if len(held) == 2:
                yield tuple(held)
                held = []
        if held:
            yield tuple(held)

    async def later(items):
        return pairs(items)

    for fn in (pairs, lambda items: pairs(items), later):
        got, failures = await run_through(
            lambda route, fn=fn: route.stream(range(5)).through(fn).map(out).broadcast()
        )
        assert not failures
        assert values(got) == [(0, 1), (2, 3), (4,)]
    got, _ = await run_through(lambda route: route.through(lambda items: [1]).map(out).broadcast())
    assert values(got) == [1]


async def test_through_may_leave_early(autojump_clock):
    """A function that takes only some values ends the run, and what came before is closed."""
    ends = []

    async def endless(message):
        try:
            while True:
                yield 1
        finally:
            ends.append("closed")

    async def first_two(items):
        n = 0
        async for item in items:
            yield item
            n += 1
            if n == 2:
                return

    got, failures = await run_through(
        lambda route: route.stream(endless).through(first_two).map(out).broadcast()
    )
    assert (values(got), ends, failures) == ([1, 1], ["closed"], [])


async def fails(value):
    raise ValueError("async")


async def fails_midway(message):
    yield 1
    raise ValueError("midway")


def raises(value):
    raise ValueError("sync")


def gen_raises(value):
    yield 1
    raise ValueError("generator")


async def through_raises(items):
    async for _ in items:
        raise ValueError("through")
    yield


FAILURES = {
    "sync map in the lead": (lambda r: r.map(raises), ".map(raises)"),
    "sync filter in the lead": (lambda r: r.filter(raises), ".filter(raises)"),
    "sync map before a stream": (lambda r: r.map(raises).stream(agen), ".map(raises)"),
    "async map": (lambda r: r.map(fails), ".map(fails)"),
    "lambda": (lambda r: r.map(lambda m: fails(m)), ".map(<lambda>)"),
    "async filter": (lambda r: r.filter(fails), ".filter(fails)"),
    "lambda filter": (lambda r: r.filter(lambda m: fails(m)), ".filter(<lambda>)"),
    "stream": (lambda r: r.stream(fails_midway), ".stream(fails_midway)"),
    "sync stream": (lambda r: r.stream(gen_raises), ".stream(gen_raises)"),
    "stream function": (lambda r: r.stream(raises), ".stream(raises)"),
    "second stream": (lambda r: r.stream(agen).stream(fails_midway), ".stream(fails_midway)"),
    "tail map": (lambda r: r.stream(agen).map(raises), ".map(raises)"),
    "tail filter": (lambda r: r.stream(agen).filter(raises), ".filter(raises)"),
    "async map after stream": (lambda r: r.stream(agen).map(fails), ".map(fails)"),
    "async filter after stream": (lambda r: r.stream(agen).filter(fails), ".filter(fails)"),
    "tail lambda": (lambda r: r.stream(agen).map(lambda v: fails(v)), ".map(<lambda>)"),
    "through": (lambda r: r.stream(agen).through(through_raises), ".through(through_raises)"),
    "through function": (lambda r: r.stream(agen).through(raises), ".through(raises)"),
    "before a buffer": (lambda r: r.stream(fails_midway).buffer(2), ".stream(fails_midway)"),
    "after a buffer": (lambda r: r.stream(agen).buffer(2).map(fails), ".map(fails)"),
    "after a buffer, sync": (lambda r: r.stream(agen).buffer(2).map(raises), ".map(raises)"),
    "before a through": (
        lambda r: r.stream(fails_midway).through(lambda items: items),
        ".stream(fails_midway)",
    ),
    "before a timeout": (lambda r: r.stream(fails_midway).timeout(5), ".stream(fails_midway)"),
}


@pytest.mark.parametrize(("build", "blamed"), FAILURES.values(), ids=FAILURES)
async def test_the_right_stage_is_blamed(build, blamed, autojump_clock):
    """Whichever stage fails, it is told by name with its own error."""
    _, failures = await run_through(build)
    assert [stage for stage, _ in failures] == [blamed]
    assert all(type(error) is ValueError for _, error in failures)


async def test_broadcasting_no_event_is_told(autojump_clock):
    """`.broadcast()` of something that is no event fails the run, and says what to do."""
    for build in (
        lambda r: r.stream(agen).broadcast(),
        lambda r: r.map(lambda m: 1).broadcast(),
        lambda r: r.stream(agen).broadcast().map(fails),
    ):
        _, failures = await run_through(build)
        ((stage, error),) = failures
        assert stage == ".broadcast()"
        assert "broadcast() publishes events, not int; wrap it in an event" in str(error)


async def test_broadcasting_a_list_of_events_is_told(autojump_clock):
    """Events in a list are published one by one."""
    _, failures = await run_through(lambda r: r.map(lambda m: [Out(value=1)]).broadcast())
    ((_, error),) = failures
    assert "not list; publish its events one by one" in str(error)


async def test_a_message_is_published_anew(autojump_clock):
    """`.broadcast()` of a message publishes its event, so that filters can forward."""
    got = []
    async with open_router() as router:
        router.on(Out, name="relay", source="caller").filter(lambda m: m.event.value).broadcast()
        router.add_sink(lambda m: got.append((m.source, m.event.value)), Out)
        router.publish(Out(value=1), "caller")
        router.publish(Out(value=0), "caller")
    assert got == [("relay", 1), ("caller", 1), ("caller", 0)]


async def test_broadcast_passes_the_value_on(autojump_clock):
    """What was broadcast goes on to the next stage, sync or waiting."""
    for last in (lambda event: Out(value=event.value * 10), lambda event: aout(event.value * 10)):
        got, _ = await run_through(
            lambda r, last=last: r.stream(agen).map(out).broadcast().map(last).broadcast()
        )
        assert values(got) == [1, 10, 2, 20]

    async def ten(event):
        return Out(value=event.value * 10)

    got, _ = await run_through(lambda r: r.stream(agen).map(out).broadcast().map(ten).broadcast())
    assert values(got) == [1, 10, 2, 20]


@pytest.mark.parametrize(
    "build",
    [
        lambda r, flood: r.stream(flood),
        lambda r, flood: r.stream(flood).filter(lambda v: False),
        lambda r, flood: r.stream(flood).map(lambda v: None),
        lambda r, flood: r.stream(flood).filter(no),
        lambda r, flood: r.stream(flood).map(nothing),
        lambda r, flood: r.stream(flood).through(swallow),
        lambda r, flood: r.stream(flood).buffer(1).filter(no),
        lambda r, flood: r.map(lambda m: flood(m)),
    ],
    ids=["bare", "filter", "map", "async filter", "async map", "through", "buffer", "lambda"],
)
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_flood_leaves_room_for_others(build, is_async):
    """A node that never waits cannot keep others from running, whatever swallows its values."""

    def flood(message):
        while True:
            yield 1

    async def aflood(message):
        while True:
            yield 1

    async with open_router() as router:
        route = build(router.on(Go).interrupt_on(Hold), aflood if is_async else flood)
        router.publish(Go())
        for _ in range(20):
            await trio.lowlevel.checkpoint()
        (run,) = router.runtime(route).runs
        router.publish(Hold())
        await run.finished()
        assert run.outcome == "interrupted"


async def no(value):
    return False


async def nothing(value):
    return None


async def swallow(items):
    async for _ in items:
        pass
    yield


async def test_the_usual_chain_has_no_layer_between():
    """`.stream(generate).broadcast()` iterates the node's own generator in the run's one task."""
    seen = {}

    async def generate(message):
        seen["task"] = trio.lowlevel.current_task()
        seen["tasks"] = living_tasks()
        yield Out()

    async with open_router() as router:
        route = router.on(Go).stream(generate).broadcast()
        items = router.runtime(route).pipeline.open(None, None)
        assert items.ag_code is generate.__code__
        await items.aclose()
        before = living_tasks()
        router.publish(Go())
        await trio.testing.wait_all_tasks_blocked()
        assert seen["tasks"] == before + 1
