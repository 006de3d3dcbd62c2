"""Stages as they are written."""

import pytest

from bargein import RouteDefinitionError
from bargein.routes._stages import (
    Broadcast,
    a_buffer,
    a_filter,
    a_map,
    a_stream,
    a_through,
    a_timeout,
)


def plain(value): ...


async def waits(value): ...


def yields(value):
    yield value


async def streams(value):
    yield value


@pytest.mark.parametrize(
    ("stage", "waits", "written"),
    [
        (a_map(plain), False, ".map(plain)"),
        (a_map(waits), True, ".map(waits)"),
        (a_map(yields), True, ".map(yields)"),
        (a_filter(plain), False, ".filter(plain)"),
        (a_filter(waits), True, ".filter(waits)"),
        (a_stream(streams), True, ".stream(streams)"),
        (a_stream([1, 2]), True, ".stream(list(...))"),
        (a_through(streams), True, ".through(streams)"),
        (a_buffer(3), True, ".buffer(3)"),
        (a_timeout(2), True, ".timeout(2.0)"),
        (Broadcast(), False, ".broadcast()"),
    ],
)
def test_a_stage_knows_whether_it_waits_and_prints_as_written(stage, waits, written):
    """Stages that wait need a task; each prints as it was written."""
    assert stage.waits is waits
    assert str(stage) == written


async def coroutine(): ...


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (a_map, None, r"\.map\(\) needs a function, not None"),
        (a_map, lambda a, b: 0, r"\.map\(\).*it may take one value: the message"),
        (a_filter, yields, r"yields is a generator"),
        (a_filter, lambda: (yield), r"is a generator"),
        (a_filter, "x", r"\.filter\(\) needs a function, not 'x'"),
        (a_stream, 5, r"\.stream\(\) needs a function, not 5"),
        (a_stream, "text", r"\.stream\(\) needs a function"),
        (a_through, lambda a, b: 0, "the stream of values, an async iterator"),
        (a_buffer, 0, r"\.buffer\(\) needs a whole number from 1 up, not 0"),
        (a_buffer, True, "not True"),
        (a_buffer, 1.5, r"not 1\.5"),
        (a_timeout, -1, r"\.timeout\(\) needs seconds above 0, not -1"),
        (a_timeout, 0, "not 0"),
        (a_timeout, float("inf"), "not inf"),
        (a_timeout, float("nan"), "not nan"),
        (a_timeout, True, "not True"),
        (a_timeout, "1", "not '1'"),
    ],
)
def test_mistakes_are_told_when_written(make, given, message):
    """A stage that can never work is refused when it is written, with the fix."""
    with pytest.raises(RouteDefinitionError, match=message):
        make(given)


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
        (iter([1, 2]), r"got <list_iterator .* iterated once.*a function that makes a new one"),
        (map(plain, []), r"got <map .* iterated once"),
        (Once(), r"got <Once>, which can be iterated once"),
    ],
)
def test_what_gives_its_values_once_is_no_source(given, message):
    """An iterator would answer the first trigger and be silent ever after, so it is refused."""
    with pytest.raises(RouteDefinitionError, match=message):
        a_stream(given)


@pytest.mark.parametrize("make", [a_map, a_filter, a_stream, a_through])
def test_a_called_function_is_refused(make):
    """A coroutine object in place of its function is refused, and closed."""
    with pytest.raises(RouteDefinitionError, match="got a coroutine object; pass the async"):
        make(coroutine())
