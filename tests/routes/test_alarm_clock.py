"""One task for all who want to be woken at a time."""

from __future__ import annotations

import math
import random

import trio

from bargein.routes._alarm_clock import SPARE_ENTRIES, AlarmClock
from tests.living import living_tasks


class Sleeper:
    """Notes when it is woken, and may do something then."""

    def __init__(self, name: str = "", woken: list[tuple[str, float]] | None = None) -> None:
        self.name = name
        self.woken = [] if woken is None else woken
        self.wakes_at_s = math.inf
        self.then = lambda: None

    def wake(self, now_s: float) -> None:
        self.woken.append((self.name, now_s))
        self.then()


async def test_a_run_has_one_clock():
    """Whoever asks for it, and one task with it."""
    clock = AlarmClock.of_run()
    tasks = living_tasks()
    assert AlarmClock.of_run() is clock
    await trio.testing.wait_all_tasks_blocked()
    assert living_tasks() == tasks


async def test_each_is_woken_once_at_its_time(autojump_clock):
    """In the order of the times; of two for the same time the first comes first."""
    clock, woken = AlarmClock.of_run(), []
    for name, at_s in (("c", 3.0), ("a", 1.0), ("d", 3.0), ("b", 2.5)):
        clock.set(Sleeper(name, woken), at_s)
    await trio.sleep(10)
    assert woken == [("a", 1), ("b", 2.5), ("c", 3), ("d", 3)]


async def test_only_the_last_time_counts(autojump_clock):
    """Earlier, later, back to where it was, and never."""
    clock, woken = AlarmClock.of_run(), []
    late, early, back, never = (Sleeper(name, woken) for name in ("late", "early", "back", "never"))
    for sleeper, times in (
        (late, (1, 4)),
        (early, (9, 2)),
        (back, (3, 8, 3)),
        (never, (1, math.inf)),
    ):
        for at_s in times:
            clock.set(sleeper, at_s)
    await trio.sleep(20)
    assert woken == [("early", 2), ("back", 3), ("late", 4)]


async def test_one_that_is_woken_may_set_all_of_them(autojump_clock):
    """Itself, also for now, and one that is due in the same step, which is woken then and again."""
    clock, woken = AlarmClock.of_run(), []
    first, second = Sleeper("first", woken), Sleeper("second", woken)
    times = iter([1.0, 2.0])

    def again() -> None:
        if (at_s := next(times, None)) is not None:
            clock.set(first, at_s)
            clock.set(second, 5)

    first.then = again
    clock.set(first, 1)
    clock.set(second, 1)
    await trio.sleep(10)
    assert woken == [("first", 1), ("second", 1), ("first", 1), ("first", 2), ("second", 5)]


async def test_nothing_is_kept_of_one_that_is_forgotten(autojump_clock):
    """However far its time is."""
    clock, sleeper = AlarmClock.of_run(), Sleeper()
    clock.set(sleeper, 1000)
    clock.forget(sleeper)
    assert all(entry[2] is not sleeper for entry in clock._heap)
    await trio.sleep(2000)
    assert sleeper.woken == []


async def test_one_that_is_put_off_all_the_time_leaves_little(autojump_clock):
    """Its outdated times are cleared away, and it is woken at the last of them."""
    clock, sleeper = AlarmClock.of_run(), Sleeper("a")
    other = Sleeper("b")
    clock.set(other, 1)
    for n in range(10 * SPARE_ENTRIES):
        clock.set(sleeper, 10 + n / 1000)
        assert len(clock._heap) <= SPARE_ENTRIES
    await trio.sleep(100)
    assert (other.woken, sleeper.woken) == ([("b", 1)], [("a", 10 + (n / 1000))])


async def test_random_times_are_kept_to(autojump_clock):
    """Fifty sleepers that are set two thousand times wake at their last time, in its order."""
    clock, woken, rng = AlarmClock.of_run(), [], random.Random(7)
    sleepers = [Sleeper(str(n), woken) for n in range(50)]
    due = {}
    for _ in range(2000):
        sleeper = rng.choice(sleepers)
        at_s = rng.choice([math.inf, *(float(n) for n in range(1, 40))])
        clock.set(sleeper, at_s)
        due[sleeper.name] = at_s
    await trio.sleep(100)
    expected = {name: at_s for name, at_s in due.items() if at_s < math.inf}
    assert dict(woken) == expected
    assert len(woken) == len(expected)
    assert [at_s for _, at_s in woken] == sorted(expected.values())
