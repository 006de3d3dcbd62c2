"""What a stage can give."""

import types

import pytest
import trio

from bargein.routes._generator_scope import CLOSE_S, closing
from bargein.routes._stage_results import Shape, is_iterator, shape_of, spread


async def later(value):
    return value


async def astream(*values):
    for value in values:
        yield value


def stream(*values):
    yield from values


class Iterable:
    """Can be iterated, and is no iterator itself."""

    def __init__(self):
        self.closed = []

    async def __aiter__(self):
        try:
            yield 1
            yield 2
        finally:
            self.closed.append("iterator")

    async def aclose(self):
        self.closed.append("iterable")


async def taken(value, lists=False):
    return [item async for item in spread(value, lists=lists)]


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (5, Shape.PLAIN),
        ("text", Shape.PLAIN),
        ({"a": 1}, Shape.PLAIN),
        ([1], Shape.LISTED),
        ((1,), Shape.LISTED),
        (range(2), Shape.LISTED),
        ({1}, Shape.LISTED),
        (iter([1]), Shape.ITERATOR),
        (stream(1), Shape.ITERATOR),
        (astream(1), Shape.ASYNC_ITERATOR),
        (Iterable(), Shape.ASYNC_ITERATOR),
        (trio.as_safe_channel(astream)(1), Shape.CHANNEL),
    ],
)
def test_shapes(value, shape):
    """Each kind of value is known by its class."""
    assert shape_of(value) is shape
    assert shape_of(value) is shape
    assert is_iterator(value) is (shape not in (Shape.PLAIN, Shape.CHANNEL))


def test_an_awaitable_generator_does_not_change_what_generators_are():
    """A generator made to be awaited is awaitable, and others stay iterators."""

    @types.coroutine
    def old_style():
        yield

    assert shape_of(old_style()) is Shape.AWAITABLE
    assert shape_of(stream(1)) is Shape.ITERATOR


async def test_values_are_taken_one_by_one():
    """Iterators of both kinds, awaitables and what they give are taken apart; lists on demand."""
    assert await taken(5) == [5]
    assert await taken(None) == []
    assert await taken(later(5)) == [5]
    assert await taken(later(None)) == []
    assert await taken(later(later(astream(1, 2)))) == [1, 2]
    assert await taken(stream(1, 2)) == [1, 2]
    assert await taken(iter([1, 2])) == [1, 2]
    assert await taken([1, 2]) == [[1, 2]]
    assert await taken([1, 2], lists=True) == [1, 2]
    assert await taken(later((1, 2)), lists=True) == [1, 2]


async def test_what_is_left_early_is_closed():
    """Leaving early closes sync and async generators, and both an iterable and its iterator."""
    ends = []

    def sync():
        try:
            yield 1
        finally:
            ends.append("sync")

    for value in (sync(), Iterable()):
        items = spread(value, lists=False)
        async with closing(items):
            assert await anext(items) == 1
        if isinstance(value, Iterable):
            assert value.closed == ["iterator", "iterable"]
    assert ends == ["sync"]


async def test_closing_is_bounded(autojump_clock):
    """A clean-up that sleeps is given a bounded time, even within a cancelled scope."""

    async def stubborn():
        try:
            yield 1
        finally:
            await trio.sleep(60)

    items = stubborn()
    with trio.CancelScope() as scope:
        async with closing(items):
            await anext(items)
            scope.cancel()
    assert trio.current_time() == CLOSE_S


async def test_what_cannot_be_closed_is_left_alone():
    """An async iterator without `aclose` needs none."""

    class Bare:
        def __aiter__(self):
            return self

        async def __anext__(self):
            return 1

    async with closing(Bare()) as items:
        assert await anext(items) == 1
