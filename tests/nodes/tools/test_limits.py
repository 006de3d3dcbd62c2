"""How long a tool may still run."""

import math

import trio

from bargein.nodes.tools._limits import Limits


async def waited(limits):
    """Wait under the limits, and return when that ended."""
    with limits.scope:
        await trio.sleep(100)
    return trio.current_time()


async def test_without_limits(autojump_clock):
    """Nothing ends the wait."""
    limits = Limits(None)
    limits.begin()
    assert await waited(limits) == 100
    assert not limits.is_over
    assert not limits.is_timeout


async def test_the_timeout_counts_from_the_beginning(autojump_clock):
    """What comes before it, such as a question, does not count."""
    limits = Limits(3.0)
    await trio.sleep(2)
    limits.begin()
    assert await waited(limits) == 5
    assert limits.is_timeout


async def test_the_earlier_deadline_counts(autojump_clock):
    """An interrupt's deadline before the timeout is no timeout, and the other way round."""
    for stop_s, ended_s, is_timeout in [(1.0, 1.0, False), (3.0, 2.0, True), (2.0, 2.0, True)]:
        now_s = trio.current_time()
        limits = Limits(2.0)
        limits.begin()
        limits.stop_at(now_s + stop_s)
        assert await waited(limits) == now_s + ended_s
        assert limits.is_over
        assert limits.is_timeout == is_timeout


async def test_a_deadline_may_be_taken_back(autojump_clock):
    """Then only the timeout is left."""
    limits = Limits(9.0)
    limits.begin()
    limits.stop_at(1.0)
    limits.stop_at(math.inf)
    assert await waited(limits) == 9
