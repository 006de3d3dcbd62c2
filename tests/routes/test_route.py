"""Chains as they are written."""

from typing import Literal

import pytest
import trio

from bargein.routes import Event, RouteDefinitionError, open_router


class Went(Event):
    type: Literal["rt.went"] = "rt.went"
    way: str = ""


class Came(Event):
    type: Literal["rt.came"] = "rt.came"


def one(value):
    return value


def two(value):
    return value


async def answer(message):
    yield Came()


async def halves(items):
    async for item in items:
        yield item


async def test_a_chain_prints_as_written():
    """`repr` and `str` show every step and option of a chain, in the order of writing."""
    async with open_router() as router:
        route = (
            router.on(Went, where=one, source="caller", linked=True, way="up")
            .interrupt_on(Came, handler=two)
            .pause_on("rt.*")
            .resume_on(one)
            .filter(one)
            .map(two)
            .stream(answer)
            .through(halves)
            .buffer(2)
            .timeout(1.5)
            .broadcast()
        )
        assert repr(route) == (
            "bridge.on(Went, way='up', source='caller', where=one, linked=True)"
            ".interrupt_on(Came, handler=two).pause_on('rt.*').resume_on(one)"
            ".filter(one).map(two).stream(answer).through(halves).buffer(2).timeout(1.5)"
            ".broadcast()"
        )
        assert str(route) == repr(route)
        assert route.streams
        assert not router.on(Went).map(one).streams
        assert repr(router.on(Went, overlap="concurrent", limit=3)) == (
            "bridge.on(Went, overlap='concurrent', limit=3)"
        )
        assert (
            repr(router.on(Went, overlap="concurrent")) == "bridge.on(Went, overlap='concurrent')"
        )
        assert repr(router.on([Went, Came])) == "bridge.on([Went, Came])"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"overlap": "both"}, "overlap= is 'queue', 'restart', 'drop' or 'concurrent', not 'both'"),
        ({"overlap": "drop", "limit": 2}, "limit= has no meaning with overlap='drop'"),
        ({"overlap": "restart", "limit": 2}, "limit= has no meaning"),
        ({"limit": 0}, "limit= is a whole number from 1 up, not 0"),
        ({"limit": True}, "not True"),
        ({"limit": 1.5}, r"not 1\.5"),
        ({"overlap": "concurrent", "limit": -1}, "not -1"),
        ({"overlaps": "queue"}, "Went has no field 'overlaps'"),
        ({"way": 5}, "way=5 can never equal Went.way"),
        ({"where": 5}, "where= needs a function"),
    ],
)
async def test_mistakes_are_told_when_written(options, message):
    """Options that can never work are refused when the chain is begun."""
    async with open_router() as router:
        with pytest.raises(RouteDefinitionError, match=message):
            router.on(Went, **options)


async def test_no_value_is_published_twice():
    """A chain that publishes its values, such as that of ``converse()``, is not made to again."""
    async with open_router() as router:
        route = router.on(Went).map(one).broadcast()
        with pytest.raises(RouteDefinitionError, match=r"\.map\(one\)\.broadcast\(\) pub"):
            route.broadcast()
        route.filter(bool).broadcast()


async def test_the_chain_as_last_written_is_the_one_that_runs():
    """Each step replaces the chain it was made from, so nothing runs twice."""
    calls = []
    async with open_router() as router:
        begun = router.on(Went)
        longer = begun.map(lambda m: calls.append("a") or 1)
        last = longer.map(lambda v: calls.append("b"))
        router.publish(Went())
        assert calls == ["a", "b"]
        assert [runtime.route for runtime in router.routes] == [last]
        with pytest.raises(KeyError):
            router.runtime(begun)


async def test_a_fork_makes_two_chains():
    """Two steps made from the same chain make two chains, in the order of writing."""
    calls = []
    async with open_router() as router:
        base = router.on(Went).map(lambda m: m.event.way)
        base.map(lambda way: calls.append(("left", way)))
        base.map(lambda way: calls.append(("right", way)))
        router.publish(Went(way="x"))
    assert calls == [("left", "x"), ("right", "x")]


async def test_a_chain_without_stages_does_nothing():
    """A chain with rules only triggers nothing."""
    async with open_router() as router:
        route = router.on(Went).interrupt_on(Came)
        router.publish(Went())
        assert router.runtime(route).statistics.started == 0


async def test_on_begins_the_next_chain_of_the_same_source():
    """`.on()` at the end of a chain begins another with the same source."""
    sources = []
    async with open_router() as router:
        router.on(Went, name="agent").map(lambda m: None).on(Went).map(lambda m: Came()).broadcast()
        router.add_sink(lambda m: sources.append(m.source), Came)
        router.publish(Went(), "caller")
        assert len(router.routes) == 2
    assert sources == ["agent"]


async def test_a_chain_is_a_value():
    """A chain cannot be changed, only written further."""
    async with open_router() as router:
        route = router.on(Went)
        with pytest.raises(AttributeError):
            route.stages = ()


async def test_a_chain_written_further_while_it_runs_keeps_its_rules(autojump_clock):
    """A run of the shorter chain goes on, can still be cut, and is then forgotten."""
    seen = []

    async def slowly(message):
        for n in range(9):
            await trio.sleep(1)
            seen.append(n)
            yield Came()

    async with open_router() as router:
        short = router.on(Went).interrupt_on(Came, source="caller").stream(slowly)
        router.publish(Went())
        await trio.sleep(1.5)
        runtime = router.runtime(short)
        short.broadcast()
        await trio.sleep(1)
        router.publish(Came(), "caller")
        await trio.sleep(5)
        assert seen == [0, 1]
        assert runtime.runs == ()
        assert runtime.statistics.cut == 1
        assert router.publish(Came(), "caller").id
        assert len(runtime.decisions) == 2  # it no longer hears of anything
