"""Stages as they are written."""

from typing import Literal

import pytest
import trio

from bargein import Event, RouteDefinitionError
from bargein.routes import open_router


class Go(Event):
    type: Literal["st.go"] = "st.go"


def write(stage, *given):
    """Return how a route with this stage prints, behind its `on()`."""

    async def main():
        async with open_router() as router:
            return str(getattr(router.on(Go), stage)(*given))

    return trio.run(main).removeprefix("bridge.on(Go)")


def plain(value): ...


async def waits(value): ...


def yields(value):
    yield value


async def streams(value):
    yield value


@pytest.mark.parametrize(
    ("stage", "given", "written"),
    [
        ("map", [plain], ".map(plain)"),
        ("map", [yields], ".map(yields)"),
        ("filter", [plain], ".filter(plain)"),
        ("filter", [waits], ".filter(waits)"),
        ("stream", [streams], ".stream(streams)"),
        ("stream", [[1, 2]], ".stream(list(...))"),
        ("through", [streams], ".through(streams)"),
        ("buffer", [3], ".buffer(3)"),
        ("timeout", [2], ".timeout(2.0)"),
        ("broadcast", [], ".broadcast()"),
    ],
)
def test_a_stage_prints_as_written(stage, given, written):
    """A route shows each of its stages as it was written."""
    assert write(stage, *given) == written


async def coroutine(): ...


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        ("map", None, r"\.map\(\) needs a function, not None"),
        ("map", lambda a, b: 0, r"\.map\(\).*it may take one value: the message"),
        ("filter", yields, r"yields is a generator"),
        ("filter", lambda: (yield), r"is a generator"),
        ("filter", "x", r"\.filter\(\) needs a function, not 'x'"),
        ("stream", 5, r"\.stream\(\) needs a function, not 5"),
        ("stream", "text", r"\.stream\(\) needs a function"),
        ("through", lambda a, b: 0, "the stream of values, an async iterator"),
        ("buffer", 0, r"\.buffer\(\) needs a whole number from 1 up, not 0"),
        ("buffer", True, "not True"),
        ("buffer", 1.5, r"not 1\.5"),
        ("timeout", -1, r"\.timeout\(\) needs seconds above 0, not -1"),
        ("timeout", 0, "not 0"),
        ("timeout", float("inf"), "not inf"),
        ("timeout", float("nan"), "not nan"),
        ("timeout", True, "not True"),
        ("timeout", "1", "not '1'"),
    ],
)
def test_mistakes_are_told_when_written(make, given, message):
    """A stage that can never work is refused when it is written, with the fix."""
    with pytest.raises(RouteDefinitionError, match=message):
        write(make, given)


class Once:
    """Something that can be iterated once, and is no generator."""

    def __repr__(self):
        return "<Once>"

    def __aiter__(self):
        return self

    async def __anext__(self):
        raise StopAsyncIteration


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (streams(0), r"\.stream\(streams\(\)\) got a generator.*without.*: \.stream\(streams\)$"),
        (yields(0), r"\.stream\(yields\(\)\) got a generator.*without.*: \.stream\(yields\)$"),
        (iter([1, 2]), r"got <list_iterator .* iterated only once.*function that makes a new one"),
        (map(plain, []), r"got <map .* iterated only once"),
        (Once(), r"got <Once>, which can be iterated only once"),
    ],
)
def test_what_gives_its_values_once_is_no_source(given, message):
    """An iterator would answer the first trigger and be silent ever after, so it is refused."""
    with pytest.raises(RouteDefinitionError, match=message):
        write("stream", given)


@pytest.mark.parametrize("make", ["map", "filter", "stream", "through"])
def test_a_called_function_is_refused(make):
    """A coroutine object in place of its function is refused, and closed."""
    with pytest.raises(RouteDefinitionError, match="got a coroutine object; pass the async"):
        write(make, coroutine())
