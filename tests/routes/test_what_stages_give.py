"""What a stage can give, taken apart, and closed when it is left early."""

from __future__ import annotations

import pytest
import trio

from bargein.events import DTMFInput, UserStartedSpeaking
from bargein.routes import open_router


async def later(value):
    return value


async def astream(*values):
    for value in values:
        yield value


def stream(*values):
    yield from values


class Iterable:
    """Can be iterated, and is no iterator itself; notes what is closed."""

    def __init__(self, closed):
        self.closed = closed

    async def __aiter__(self):
        try:
            yield 1
            await trio.sleep_forever()
        finally:
            self.closed.append("iterator")

    async def aclose(self):
        self.closed.append("iterable")


async def given(value):
    """Return what a chain makes of what a stage gives."""
    got = []
    async with open_router() as router:
        router.on(DTMFInput).map(lambda _: value).map(got.append)
        router.publish(DTMFInput(button="1"))
        await trio.testing.wait_all_tasks_blocked()
    return got


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, [5]),
        ("text", ["text"]),
        ({"a": 1}, [{"a": 1}]),
        (None, []),
        ([1, 2], [[1, 2]]),
        (iter([1, 2]), [1, 2]),
        (stream(1, 2), [1, 2]),
    ],
    ids=["number", "text", "mapping", "none", "list", "iterator", "generator"],
)
async def test_values_are_taken_one_by_one(autojump_clock, value, expected):
    """Iterators are taken apart; a list is one value, and nothing is none."""
    assert await given(value) == expected


async def test_what_is_awaited_is_taken_apart_as_well(autojump_clock):
    """Coroutines, async generators, and coroutines that give these."""
    assert await given(later(5)) == [5]
    assert await given(later(None)) == []
    assert await given(astream(1, 2)) == [1, 2]
    assert await given(later(later(astream(1, 2)))) == [1, 2]


@pytest.mark.parametrize("kind", ["generator", "iterable"])
async def test_what_is_left_early_is_closed(autojump_clock, kind):
    """A cut closes generators, and of an iterable both its iterator and itself."""
    closed = []

    async def generate(message):
        try:
            yield 1
            await trio.sleep_forever()
        finally:
            closed.append("iterator")

    async with open_router() as router:
        on_key = router.on(DTMFInput).interrupt_on(UserStartedSpeaking)
        on_key.stream(generate if kind == "generator" else lambda _: Iterable(closed))
        router.publish(DTMFInput(button="1"))
        await trio.sleep(1)
        assert closed == []
        router.publish(UserStartedSpeaking())
        await trio.sleep(1)
    assert closed == (["iterator"] if kind == "generator" else ["iterator", "iterable"])


async def test_a_clean_up_is_bounded(autojump_clock):
    """One that sleeps within the cut is given a second."""
    took_s = []

    async def generate(message):
        try:
            yield 1
        finally:
            began_s = trio.current_time()
            try:
                await trio.sleep(60)
            finally:
                took_s.append(trio.current_time() - began_s)

    async def stay(value):
        await trio.sleep_forever()

    async with open_router() as router:
        on_key = router.on(DTMFInput).interrupt_on(UserStartedSpeaking)
        on_key.stream(generate).map(stay)
        router.publish(DTMFInput(button="1"))
        await trio.sleep(1)
        router.publish(UserStartedSpeaking())
        await trio.sleep(100)
    assert took_s == [1.0]
