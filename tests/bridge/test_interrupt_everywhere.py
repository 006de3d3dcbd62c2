"""Interrupting a scenario at each of its points."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
import trio
import trio.testing

from bargein import Call, Message
from bargein.events import (
    AgentResponse,
    EndCall,
    UserStoppedSpeaking,
)
from bargein.testing import (
    Caller,
    InterruptionPoint,
    barge_in,
    interrupt_everywhere,
)
from tests.bridge.scenarios import Generate, agent, breaches, broken, one_question, sound

pytestmark = pytest.mark.proof


# --- the points ---------------------------------------------------------------------------------


def test_each_wait_and_its_middle_are_points():
    """An agent that waits twice is interrupted before, in, between and after its waits."""
    times: list[float] = []

    def interrupt(caller: Caller) -> None:
        times.append(round(caller.now_s, 3))
        barge_in(caller)

    report = interrupt_everywhere(sound, one_question, interrupt=interrupt, audio=False)
    # The user speaks for a second; the agent thinks, and thinks again.
    assert sorted(set(times)) == [0.0, 0.5, 1.0, 1.2, 1.4, 1.6, 1.8]
    assert len(times) == report.points == len(report.tried)
    thinks = [t for t in times if 1.0 <= t < 1.8]
    assert len([t for t in thinks if t == 1.2]) == 1, "amid the first thought"
    assert report.cut == len([run for run in report.tried if run.answers_cut]) > 4
    assert report.drifted == 0
    names = " ".join(report.where)
    assert "the scenario: bargein/bridge/testing/_caller.py" in names
    assert "run of agent: on(UserStoppedSpeaking): tests/bridge/scenarios" in names
    assert "in generate" in names
    assert "its end" in names


def test_the_interrupt_comes_before_any_other_step():
    """A window of a single checkpoint is found, at the one point that lies in it."""

    def generator(call: Call) -> Generate:
        state = {"begun": 0, "ended": 0}

        async def generate(message: Message) -> AsyncIterator[object]:
            assert state["begun"] == state["ended"], "it was left in between"
            await trio.sleep(0.2)
            state["begun"] += 1
            await trio.lowlevel.checkpoint()
            state["ended"] += 1
            await trio.sleep(0.2)
            yield AgentResponse(content="Done.")

        return generate

    report = broken(agent(generator))
    (run,) = report.broken
    assert "in generate" in run.point.where
    assert run.point.later_s == 0
    assert run.point.at_s == pytest.approx(1.2)
    assert any("AssertionError" in breach for breach in run.breaches)
    assert any("it does not answer" in breach for breach in run.breaches)


def test_a_second_interrupt_comes_one_step_later():
    """twice= interrupts at the point and after the next step of the scheduler."""
    calls: list[tuple[str, float]] = []

    def interrupt(caller: Caller) -> None:
        calls.append((str(id(caller)), caller.now_s))
        barge_in(caller)

    report = interrupt_everywhere(sound, one_question, interrupt=interrupt, twice=True, audio=False)
    callers = [caller for caller, _ in calls]
    assert len(calls) == 2 * report.points - 1, "after the last point the scenario is over"
    assert len(set(callers)) <= report.points


def test_speech_is_interrupted_word_by_word():
    """With audio, what was heard grows from point to point, up to the whole."""
    heard: list[tuple[float, str]] = []

    def check(caller: Caller) -> None:
        entry = next(e for e in caller.call.history if e.role == "agent")
        heard.append((len(entry.heard), entry.heard))

    report = interrupt_everywhere(sound, one_question, check=check, chars_per_s=20)
    assert report.cut > 10
    lengths = {length for length, _ in heard}
    assert {0, len("One"), len("One sentence."), len("One sentence. And another.")} <= lengths
    assert all("One sentence. And another.".startswith(text) for _, text in heard)


def test_looking_again_and_again_makes_no_points():
    """until() looks each millisecond, and adds the begin and the middle of its wait."""

    async def scenario(caller: Caller) -> None:
        caller.publish(UserStoppedSpeaking())
        await caller.until(lambda c: c.now_s >= 0.3)
        await caller.quiet()

    report = interrupt_everywhere(sound, scenario, audio=False)
    looks = [run.point for run in report.tried if "in until" in run.point.where]
    assert len(looks) <= 3, "of 300 looks"
    assert round(looks[-1].at_s, 2) == 0.15


def test_a_limit_spreads_over_places_and_time():
    """Rare places are all tried, and of the others some of each part of the time."""

    def chatty(call: Call) -> Generate:
        async def generate(message: Message) -> AsyncIterator[object]:
            for _ in range(20):
                await trio.sleep(0.5)
                yield AgentResponse(content="On and on. ")

        return generate

    def tried(**options: Any) -> list[InterruptionPoint]:
        report = interrupt_everywhere(agent(chatty), one_question, audio=False, **options)
        return [run.point for run in report.tried]

    points = tried()
    often = "in generate"
    rare = {point.where for point in points if often not in point.where}
    chosen = tried(limit=20, seed=1)
    assert len(chosen) == 20
    assert {point.where for point in chosen if often not in point.where} == rare
    times = [point.at_s for point in chosen if often in point.where]
    assert times == sorted(times)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert max(gaps) < 3 * 10 / len(times), "each part of the ten seconds has one"
    assert tried(limit=20, seed=1) == chosen != tried(limit=20, seed=2)
    assert tried(limit=len(points)) == points
    assert len(tried(limit=1)) == 1


def test_a_report_prints_as_a_table():
    """The first line counts; then one line for each place."""
    report = interrupt_everywhere(sound, one_question, audio=False, limit=5)
    lines = str(report).splitlines()
    assert lines[0] == (
        f"{report.points} points, 5 tried, {report.cut} cut an answer, 0 broke, 0 drifted"
    )
    assert lines[1] == "tried  cut  where"
    assert len(lines) == 2 + len(report.where)
    assert sum(int(line.split()[0]) for line in lines[2:]) == 5


def test_the_dice_are_put_back():
    """What runs after it is as random, or as seeded, as before."""
    import random

    from trio._core import _run

    before = _run._r.getstate(), random.getstate(), _run._ALLOW_DETERMINISTIC_SCHEDULING
    interrupt_everywhere(sound, one_question, audio=False, limit=2)
    assert before == (
        _run._r.getstate(), random.getstate(), _run._ALLOW_DETERMINISTIC_SCHEDULING
    )  # fmt: skip


def test_what_differs_from_run_to_run_is_told_as_drift():
    """Points that are not where they were found are counted, and tried all the same."""
    runs: list[int] = []

    def generator(call: Call) -> Generate:
        runs.append(1)

        async def generate(message: Message) -> AsyncIterator[object]:
            for _ in range(len(runs)):
                await trio.sleep(0.1)
            yield AgentResponse(content="Done.")

        return generate

    report = interrupt_everywhere(agent(generator), one_question, audio=False)
    assert 0 < report.drifted < len(report.tried)


def test_what_check_finds_is_told_with_its_point():
    """The failure names point, task, line and time, and what check= raised."""

    def check(caller: Caller) -> None:
        assert caller.heard.startswith("One sentence. And"), "a sentence is missing"

    with pytest.raises(AssertionError) as caught:
        interrupt_everywhere(sound, one_question, check=check, probe=None, audio=False)
    text = str(caught.value)
    assert "interrupts broke the scenario\ninterrupted after step " in text
    assert " and 0.200 s, at 1.200 s: the scenario, bargein/bridge/answers/_call_answers.py" in text
    assert "    check= raised in tests/bridge/test_interrupt_everywhere.py:" in text
    assert "a sentence is missing" in text
    assert isinstance(caught.value.__cause__, AssertionError)


async def async_check(caller: Caller) -> None:
    await trio.sleep(0.1)
    raise ValueError("async")


def test_check_may_wait():
    """An async check= is awaited while the call is open."""
    with pytest.raises(AssertionError, match=r"without an interrupt:\n.*ValueError\('async'\)"):
        interrupt_everywhere(sound, one_question, check=async_check, audio=False)


def test_a_scenario_that_waits_for_ever_is_told():
    """The line at which it waited is named."""

    async def scenario(caller: Caller) -> None:
        await one_question(caller)
        while "another" not in caller.heard:  # noqa: ASYNC110 - as a scenario should not
            await trio.sleep(1)

    report = broken(sound, scenario, within_s=10)
    (breach,) = breaches(report)
    assert breach.startswith("the scenario did not end within 11.8 s: it waited in tests/bridge/")
    assert breach.endswith("in scenario")


def test_a_call_that_ends_is_told_unless_it_may():
    """An interrupt that ends the call says so by ends_call=."""

    def hang_up(caller: Caller) -> None:
        caller.call.end("disconnected")

    report = broken(sound, interrupt=hang_up)
    assert breaches(report) == {"the call has ended: 'disconnected'"}
    assert len(report.broken) == report.points
    interrupt_everywhere(sound, one_question, interrupt=hang_up, ends_call=True, audio=False)


def test_a_call_that_ends_anyway_may_end_when_interrupted():
    """Nothing is asked of an agent that has hung up, and one whose goodbye was cut answers on."""

    def generator(call: Call) -> Generate:
        async def generate(message: Message) -> AsyncIterator[object]:
            await trio.sleep(0.4)
            yield AgentResponse(content="Goodbye!")
            yield EndCall()

        return generate

    ends: list[bool] = []
    interrupt_everywhere(
        agent(generator),
        one_question,
        check=lambda caller: ends.append(caller.call.ended.is_set()),
        probe=None,
    )
    assert set(ends) == {True, False}


def test_what_the_interrupt_raises_is_told():
    """A mistake in interrupt= breaks the points, not the tool."""

    def interrupt(caller: Caller) -> None:
        raise KeyError("nothing of the kind")

    report = broken(sound, interrupt=interrupt, limit=2)
    assert len(report.broken) == 2
    assert all("interrupt= raised" in breach for breach in breaches(report))


def test_a_broken_scenario_is_told_as_such():
    """What fails without an interrupt is no finding about interrupts."""

    async def scenario(caller: Caller) -> None:
        raise ValueError("in the script")

    with pytest.raises(AssertionError, match=r"without an interrupt:\n  the scenario raised in"):
        interrupt_everywhere(sound, scenario, audio=False)


def test_wrong_use_is_told():
    """Async interrupts, impossible limits and calls from within trio are refused."""

    async def wait(caller: Caller) -> None:
        await trio.sleep(1)

    with pytest.raises(TypeError, match="must be a plain function"):
        interrupt_everywhere(sound, one_question, interrupt=wait)
    with pytest.raises(ValueError, match=r"limit= is a whole number from 1, .* not 0"):
        interrupt_everywhere(sound, one_question, limit=0)


async def test_it_is_not_for_async_tests(autojump_clock):
    """Within trio it says where it belongs."""
    with pytest.raises(RuntimeError, match="call it from a plain test"):
        interrupt_everywhere(sound, one_question)
