"""Looking at functions."""

import functools

import pytest

from bargein import RouteDefinitionError
from bargein.routes._calls import (
    fit,
    is_async_function,
    is_generator_function,
    name_of,
    needs_function,
    needs_plain_function,
)


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
    assert name_of(functools.partial(plain, 1)) == "plain"
    assert name_of(Node()) == "Node(...)"
    assert name_of(len) == "len"


@pytest.mark.parametrize(
    "fn",
    [waits, streams, Node().think, Node(), functools.partial(waits, 1), functools.partial(Node())],
)
def test_async_functions_are_known(fn):
    """Async functions, generators, methods, partials and callables all count as async."""
    assert is_async_function(fn)


@pytest.mark.parametrize("fn", [plain, yields, len, Node, functools.partial(plain, 1)])
def test_plain_functions_are_known(fn):
    """What gives nothing to await is no async function; a class never is."""
    assert not is_async_function(fn)


def test_generators_are_known():
    """Generator functions are known, sync and async."""
    assert is_generator_function(yields)
    assert is_generator_function(streams)
    assert not is_generator_function(waits)


def test_fitting_does_not_hide_what_a_function_is():
    """A function fitted to more arguments is still seen as async, or as a generator."""
    assert is_async_function(fit(waits_for_nothing, 1, ".map()", "one value"))
    assert is_generator_function(fit(yields, 1, ".map()", "one value"))


def test_a_coroutine_object_is_refused():
    """A coroutine object in place of its function is closed and refused, with the fix."""
    coroutine = waits(1)
    with pytest.raises(RouteDefinitionError, match="without calling it"):
        needs_function(coroutine, ".map()")


def test_what_cannot_be_called_is_refused():
    """Anything else is refused by name."""
    with pytest.raises(RouteDefinitionError, match=r"\.map\(\) needs a function, not 5"):
        needs_function(5, ".map()")


def test_an_async_function_cannot_decide_in_the_same_step():
    """Where the answer is needed at once, async functions are refused."""
    with pytest.raises(RouteDefinitionError, match="waits is async"):
        needs_plain_function(waits, "condition=")
    needs_plain_function(plain, "condition=")


@pytest.mark.parametrize(
    ("fn", "got"),
    [
        (lambda: "none", "none"),
        (lambda a: (a,), (1,)),
        (lambda a, b: (a, b), (1, 2)),
        (lambda *rest: rest, (1, 2)),
        (lambda a, b=5, c=6: (a, b, c), (1, 2, 6)),
    ],
)
def test_functions_get_as_much_as_they_take(fn, got):
    """Arguments beyond what a function takes are left out."""
    assert fit(fn, 2, ".x()", "two")(1, 2) == got


def test_a_builtin_without_signature_gets_everything():
    """What cannot be inspected is called with all arguments."""
    assert fit(max, 2, ".x()", "two")(1, 2) == 2


@pytest.mark.parametrize("fn", [lambda a, b, c: 0, lambda a, *, key: 0])
def test_functions_that_need_more_are_refused(fn):
    """A function that needs more than there is cannot be used, and is told what it may take."""
    with pytest.raises(RouteDefinitionError, match="it may take nothing at all"):
        fit(fn, 2, ".x()", "nothing at all")
