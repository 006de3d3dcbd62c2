"""Functions in a chain: their names, what they may be, and how much they are given."""

import functools
from typing import Literal

import pytest
import trio

from bargein import Event, RouteDefinitionError
from bargein.routes import open_router


class Go(Event):
    type: Literal["fn.go"] = "fn.go"


def written(chain):
    """Return how a chain prints that a function begins with an `on()`."""

    async def main():
        async with open_router() as router:
            return str(chain(router.on))

    return trio.run(main)


def name_of(fn):
    """Return the name of a function in the chain that it stands in."""
    text = written(lambda on: on(Go).map(fn))
    return text.removeprefix("bridge.on(Go).map(").removesuffix(")")


class Node:
    def method(self, message): ...

    @classmethod
    def make(cls, message): ...

    async def think(self, message): ...

    async def __call__(self, message): ...


def plain(value): ...


async def waits(value): ...


async def waits_for_nothing(): ...


async def streams(value):
    yield value


def yields():
    yield 1


def test_names_are_those_a_reader_knows():
    """A function is named as it is written, without where it was defined."""

    def inner(): ...

    assert name_of(Node().method) == "Node.method"
    assert name_of(Node.make) == "Node.make"
    assert name_of(plain) == "plain"
    assert name_of(inner) == "inner"
    assert name_of(lambda: 0) == "<lambda>"
    assert name_of(functools.partial(plain)) == "plain"
    assert name_of(functools.partial(plain, 1)) == "plain"  # takes nothing more
    assert name_of(Node()) == "Node(...)"
    assert name_of(len) == "len"


@pytest.mark.parametrize(
    "fn",
    [
        waits,
        waits_for_nothing,
        streams,
        Node().think,
        Node(),
        functools.partial(waits),
        functools.partial(Node()),
    ],
)
def test_async_functions_cannot_decide_in_the_same_step(fn):
    """Where the answer is needed at once, whatever gives something to await is refused."""
    with pytest.raises(RouteDefinitionError, match="must be a plain function"):
        written(lambda on: on(Go, where=fn).map(plain))


@pytest.mark.parametrize("fn", [plain, len, Node().method, functools.partial(plain)])
def test_plain_functions_may_decide(fn):
    """What gives nothing to await is no async function."""
    assert written(lambda on: on(Go, where=fn).map(plain)).startswith("bridge.on(Go, where=")


@pytest.mark.parametrize("fn", [yields, streams, functools.partial(streams)])
def test_generators_decide_nothing(fn):
    """A generator gives no answer of yes or no, sync or async, fitted to a value or not."""
    with pytest.raises(RouteDefinitionError, match="is a generator"):
        written(lambda on: on(Go).filter(fn))


@pytest.mark.filterwarnings("error")
def test_a_coroutine_object_is_refused():
    """A coroutine object in place of its function is closed and refused, with the fix."""
    coroutine = waits(1)
    with pytest.raises(RouteDefinitionError, match="without calling it"):
        written(lambda on: on(Go).map(coroutine))


def test_what_cannot_be_called_is_refused():
    """Anything else is refused by name."""
    with pytest.raises(RouteDefinitionError, match=r"\.map\(\) needs a function, not 5"):
        written(lambda on: on(Go).map(5))


@pytest.mark.parametrize("takes", [0, 1, 3, "rest", "print"])
async def test_functions_get_as_much_as_they_take(takes):
    """Arguments beyond what a function takes are left out; what has a default keeps it."""
    got = []
    fn = {
        0: lambda: got.append(()),
        1: lambda a: got.append((a,)),
        3: lambda a, b=5, c=6: got.append((a, b, c)),
        "rest": lambda *rest: got.append(rest),
        "print": got.append,
    }[takes]
    async with open_router() as router:
        router.on(Go).map(lambda message: "x").map(fn)
        router.publish(Go(), "caller")
    expected = {0: (), 1: ("x",), 3: ("x", 5, 6), "rest": ("x",), "print": "x"}
    assert got == [expected[takes]]


@pytest.mark.parametrize("fn", [lambda a, b, c: 0, lambda a, *, key: 0])
def test_functions_that_need_more_are_refused(fn):
    """A function that needs more than there is cannot be used, and is told what it may take."""
    with pytest.raises(RouteDefinitionError, match="it may take one value"):
        written(lambda on: on(Go).map(fn))
