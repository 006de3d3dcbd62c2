"""Caps and the meter that counts them."""

from __future__ import annotations

import math
from dataclasses import asdict, make_dataclass

import pytest
import trio

from bargein import CapReachedError, Caps, Meter, current_meter, current_run
from bargein.control import ActiveClock
from bargein.events import AgentResponse, CapWarning, UserStoppedSpeaking
from bargein.testing import open_call


def test_caps_of_your_own_may_have_further_fields():
    """Only the caps are checked, whatever a subclass adds, and however it is annotated."""
    ours = [("why", str, ""), ("offset", float, -1.0), ("note", "int", None)]
    named = make_dataclass("NamedCaps", ours, bases=(Caps,), frozen=True)
    assert named(steps=2, why="a trial").steps == 2
    with pytest.raises(ValueError, match=r"NamedCaps\(steps=\) is a whole number from 1"):
        named(steps=0)


@pytest.mark.parametrize(
    ("caps", "error", "words"),
    [
        ({"steps": 0}, ValueError, "steps"),
        ({"steps": 1.5}, TypeError, "whole number from 1"),
        ({"tool_calls": -1}, ValueError, "tool_calls"),
        ({"tokens": True}, TypeError, "tokens"),
        ({"repeats": -1}, ValueError, "whole number from 0"),
        ({"wall_s": 0}, ValueError, "above 0"),
        ({"wall_s": math.inf}, ValueError, "wall_s"),
        ({"cost": "1"}, TypeError, "cost"),
        ({"cost": math.nan}, ValueError, "cost"),
        ({"cost": 10**400}, ValueError, "cost"),
    ],
)
def test_caps_are_checked(caps, error, words):
    """A cap that can never be reached, or always is, is an error that names it."""
    with pytest.raises(error, match=words):
        Caps(**caps)


def test_caps_may_be_left_out():
    """None sets no limit, and nothing of no limit is refused."""
    assert set(asdict(Caps()).values()) == {None}
    assert Caps(steps=1, wall_s=1, tool_calls=0, tokens=1, cost=0.1, repeats=0).tool_calls == 0


async def test_a_cap_is_reached_and_never_passed(autojump_clock):
    """use() counts up to the cap, and refuses what would pass it without counting it."""
    meter = Meter(Caps(steps=3))
    for _ in range(3):
        meter.use("steps")
    with pytest.raises(CapReachedError, match=r"'steps' is reached: 3 of 3") as caught:
        meter.use("steps")
    error = caught.value
    assert (error.which, error.used, error.limit, error.meter) == ("steps", 3, 3, meter)
    assert meter.used("steps") == 3
    with pytest.raises(CapReachedError):
        Meter(Caps(tokens=10)).use("tokens", 11)


async def test_what_is_spent_may_pass_and_then_all_is_refused(autojump_clock):
    """spend() takes what is known too late; check() and use() refuse what comes after."""
    meter = Meter(Caps(tokens=100, cost=1.0))
    meter.spend("tokens", 99)
    meter.check("tokens", "cost")
    meter.spend("tokens", 20)
    meter.spend("cost", 0.5)
    with pytest.raises(CapReachedError, match="119 of 100"):
        meter.check("cost", "tokens")
    with pytest.raises(CapReachedError):
        meter.use("tokens")
    assert meter.snapshot() == {"tokens": (119, 100), "cost": (0.5, 1.0)}


async def test_the_same_call_may_follow_so_often(autojump_clock):
    """repeats= counts calls with the very same arguments, in whatever order they are written."""
    meter = Meter(Caps(repeats=1))
    meter.use_tool("look", {"a": 1, "b": 2})
    meter.use_tool("look", {"a": 1, "b": 3})
    meter.use_tool("peek", {"a": 1, "b": 2})
    assert meter.used("repeats") == 0
    meter.use_tool("look", {"b": 2, "a": 1})
    assert meter.used("repeats") == 1
    with pytest.raises(CapReachedError, match="repeats"):
        meter.use_tool("look", {"a": 1, "b": 2})
    assert meter.used("tool_calls") == 4
    assert meter.used("steps") == 4


async def test_a_refused_tool_is_not_counted(autojump_clock):
    """A call of a tool that one cap refuses counts for none."""
    meter = Meter(Caps(steps=9, tool_calls=0))
    with pytest.raises(CapReachedError, match="tool_calls"):
        meter.use_tool("look", "{not json")
    assert meter.used("steps") == 0


async def test_children_count_to_their_parent(autojump_clock):
    """What a child uses counts in all its ancestors, and each may refuse; then none counts it."""
    answer = Meter(Caps(steps=3))
    child = answer.child(Caps(steps=2)).child()
    child.use("steps")
    answer.use("steps")
    child.use("steps")
    with pytest.raises(CapReachedError) as caught:
        child.use("steps")
    assert caught.value.meter is child.parent
    assert (child.used("steps"), answer.used("steps")) == (2, 3)
    fresh = answer.child()
    with pytest.raises(CapReachedError) as caught:
        fresh.use_tool("look", {})
    assert caught.value.meter is answer
    assert fresh.used("tool_calls") == 0


async def test_time_at_work_is_capped_to_the_moment(autojump_clock):
    """within() cancels what is awaited when the time is up, and does not begin more."""
    meter = Meter(Caps(wall_s=5))
    assert await meter.within(_after, 3, "done") == "done"
    with pytest.raises(CapReachedError, match="'wall_s' is reached: 5 of 5"):
        await meter.within(trio.sleep, 3)
    assert trio.current_time() == 5
    with pytest.raises(CapReachedError):
        await meter.within(trio.sleep, 0)
    assert await Meter(Caps()).within(_after, 100, "no limit") == "no limit"


async def test_a_child_has_a_time_of_its_own(autojump_clock):
    """The time of a child begins with the child, and the parent's still applies."""
    answer = Meter(Caps(wall_s=5))
    await trio.sleep(1)
    child = answer.child(Caps(wall_s=2))
    with pytest.raises(CapReachedError) as caught:
        await child.within(trio.sleep_forever)
    assert (caught.value.meter, trio.current_time()) == (child, 3)
    with pytest.raises(CapReachedError) as caught:
        await answer.child(Caps(wall_s=9)).within(trio.sleep_forever)
    assert (caught.value.meter, trio.current_time()) == (answer, 5)


async def test_a_cancelled_wait_is_no_cap(autojump_clock):
    """Whoever is cancelled from outside gets Cancelled, not CapReachedError."""
    meter = Meter(Caps(wall_s=5))
    with trio.move_on_after(1) as scope:
        await meter.within(trio.sleep_forever)
    assert scope.cancelled_caught


async def test_paused_time_does_not_count(autojump_clock):
    """While its run is paused the clock stands, and so does every limit."""
    seen = []

    async def answer(call):
        bridge = call.bridge(name="agent")

        async def generate(message):
            clock = ActiveClock(current_run())
            meter = Meter(Caps(wall_s=2), call.answer_of(current_run()), call, clock)
            yield AgentResponse(content="ok ")
            try:
                await meter.within(trio.sleep_forever)
            except CapReachedError as error:
                seen.append((trio.current_time(), error.used))
            meter.close()

        bridge.on(UserStoppedSpeaking).stream(generate).broadcast()

    async with open_call(answer, audio=False) as caller:
        began = trio.current_time()
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(1)
        (run,) = [r for route in caller.call.router.routes for r in route.runs]
        run.pause()
        await trio.sleep(10)
        run.resume()
        await caller.quiet()
        assert seen == [(began + 12, pytest.approx(2))]
        assert caller.events(CapWarning)[0].used == pytest.approx(1.6)


async def test_a_clock_begun_in_a_pause_stands_and_can_be_let_go(autojump_clock):
    """A clock follows its run's pauses until it is closed; then it counts on."""
    clocks = []

    async def answer(call):
        async def generate(message):
            run = current_run()
            run.pause()
            clocks.append(ActiveClock(run))
            await trio.sleep_forever()
            yield

        call.bridge(name="agent").on(UserStoppedSpeaking).stream(generate).broadcast()

    async with open_call(answer, audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(3)
        (clock,) = clocks
        assert clock.elapsed_s == 0
        clock.close()
        clock.close()
        await trio.sleep(2)
        assert clock.elapsed_s == 2


async def test_a_warning_comes_once_at_four_fifths(autojump_clock):
    """Each cap of an answer is warned of once, when 80 % of it are used; a part's own is not."""

    async def answer(call):
        async def generate(message):
            answer = call.answer_of(current_run())
            meter = Meter(Caps(steps=10, tool_calls=0, cost=1), answer, call)
            for _ in range(10):
                meter.child(Caps(steps=10)).use("steps")
            meter.spend("cost", 2)
            meter.close()
            yield

        call.bridge(name="agent").on(UserStoppedSpeaking).stream(generate).broadcast()

    async with open_call(answer, audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.events(CapWarning) == [
            CapWarning(answer=1, which="steps", used=8, limit=10),
            CapWarning(answer=1, which="cost", used=2, limit=1),
        ]


async def test_an_answer_in_time_is_not_warned_of(autojump_clock):
    """The warning about time comes at 80 % of it, and not at all once the meter is closed."""

    async def answer(call):
        async def generate(message):
            meter = Meter(Caps(wall_s=10), call.answer_of(current_run()), call)
            await meter.within(trio.sleep, 7)
            meter.close()
            yield

        call.bridge(name="agent").on(UserStoppedSpeaking).stream(generate).broadcast()

    async with open_call(answer, audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        await trio.sleep(20)
        assert caller.events(CapWarning) == []


async def test_tasks_find_the_meter_that_counts_them(autojump_clock):
    """Tasks started inside in_charge() find the meter; whoever starts them does not keep it."""
    meter, found = Meter(Caps()), []

    async def look():
        found.append(current_meter())

    async with trio.open_nursery() as nursery:
        with meter.in_charge():
            nursery.start_soon(look)
        assert current_meter() is None
    assert found == [meter]


async def _after(seconds, value):
    await trio.sleep(seconds)
    return value
