"""Interrupting a scenario at each of its points."""

from __future__ import annotations

import math
import os
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from typing import Any

import pytest
import trio
import trio.testing

from bargein import App, Call, Message
from bargein.events import (
    AgentGenerationComplete,
    AgentResponse,
    DTMFInput,
    EmergencyStop,
    EndCall,
    ToolCall,
    ToolResult,
    TurnEnded,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.testing import (
    Caller,
    Point,
    Report,
    asks_on,
    barge_in,
    interrupt_everywhere,
)

pytestmark = pytest.mark.proof

Generate = Callable[[Message], AsyncIterator[object]]


def agent(*generators: Callable[[Call], Generate]) -> Callable[[Call], Any]:
    """Return an answer whose agent gives what these generate, and can be interrupted."""

    async def answer(call: Call) -> None:
        for number, generator in enumerate(generators):
            bridge = call.bridge(name=f"agent{number or ''}")
            (
                bridge.on(UserStoppedSpeaking)
                .interrupt_on([UserStartedSpeaking, EmergencyStop])
                .stream(generator(call))
                .broadcast()
            )

    return answer


def two_sentences(call: Call) -> Generate:
    async def generate(message: Message) -> AsyncIterator[object]:
        await trio.sleep(0.4)
        yield AgentResponse(content="One sentence. ")
        await trio.sleep(0.4)
        yield AgentResponse(content="And another.")

    return generate


sound = agent(two_sentences)


def once(call: Call) -> Generate:
    """Answer the first question as ``sound``, and think about the second for ever."""
    asked: list[Message] = []

    async def generate(message: Message) -> AsyncIterator[object]:
        asked.append(message)
        await trio.sleep(0.4)
        yield AgentResponse(content="One sentence. ")
        await trio.sleep(0.4 if len(asked) == 1 else math.inf)
        yield AgentResponse(content="And another.")

    return generate


async def one_question(caller: Caller) -> None:
    await caller.says("Well?", takes_s=1.0)
    await caller.quiet()


def broken(answer: Any, scenario: Any = one_question, **options: Any) -> Report:
    """Return what was found wrong."""
    with pytest.raises(AssertionError, match="interrupts broke the scenario") as caught:
        interrupt_everywhere(answer, scenario, **{"audio": False, **options})
    assert isinstance(caught.value.report, Report)
    return caught.value.report


def breaches(report: Report) -> set[str]:
    return {breach for run in report.broken for breach in run.breaches}


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
    assert report.cut == len([run for run in report.tried if run.turns_cut]) > 4
    assert report.drifted == 0
    names = " ".join(report.where)
    assert "the scenario: bargein/bridge/testing/_caller.py" in names
    assert "run of agent: on(UserStoppedSpeaking): tests/bridge/test_interrupt_everywhere" in names
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
    assert any("it does not answer any more" in breach for breach in run.breaches)


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

    def tried(**options: Any) -> list[Point]:
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
        f"{report.points} points, 5 tried, {report.cut} cut a turn, 0 broke, 0 drifted"
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


# --- what it finds ------------------------------------------------------------------------------


def test_an_agent_that_is_stuck_after_an_interrupt_is_found():
    """A flag that only the normal end resets: the agent never answers again."""

    def generator(call: Call) -> Generate:
        busy = []

        async def generate(message: Message) -> AsyncIterator[object]:
            if busy:
                return
            busy.append(1)
            await trio.sleep(0.4)
            yield AgentResponse(content="Done.")
            busy.clear()

        return generate

    report = broken(agent(generator))
    assert {run.point.at_s for run in report.broken} <= {1.0, 1.2, 1.4}
    [breach] = breaches(report)
    assert "probe= raised in bargein/bridge/testing/_interrupt_everywhere.py" in breach


def test_a_task_that_turns_in_circles_is_found():
    """A loop that an interrupt leaves without an end: the clock stands still."""

    def generator(call: Call) -> Generate:
        thinking: list[int] = []

        async def watch() -> None:
            while thinking:
                await trio.lowlevel.checkpoint()

        async def generate(message: Message) -> AsyncIterator[object]:
            thinking.append(1)
            try:
                await trio.lowlevel.checkpoint()
            except trio.Cancelled:
                call.nursery.start_soon(watch)
                raise
            thinking.clear()
            yield AgentResponse(content="Done.")

        return generate

    report = broken(agent(generator))
    assert len(report.broken) == 1
    assert any("it takes steps without end: " in breach for breach in breaches(report))


def test_a_clean_up_that_takes_an_hour_is_found():
    """The call goes on without it, and it is named when it holds up the end of the call."""

    def generator(call: Call) -> Generate:
        async def generate(message: Message) -> AsyncIterator[object]:
            try:
                await trio.sleep(0.4)
            except trio.Cancelled:
                with trio.CancelScope(shield=True):
                    await trio.sleep(3600)
                raise
            yield AgentResponse(content="Done.")

        return generate

    report = broken(agent(generator))
    # Before the first step of the run's task nothing has begun that could clean up.
    assert len(report.broken) == report.cut - 1 > 0
    assert all("s to end; last was 'run of agent: on(User" in breach for breach in breaches(report))


def test_a_descriptor_left_open_is_found(tmp_path):
    """A file that is closed only when all goes well."""
    opened: list[int] = []

    def generator(call: Call) -> Generate:
        async def generate(message: Message) -> AsyncIterator[object]:
            descriptor = os.open(tmp_path, os.O_RDONLY)
            opened.append(descriptor)
            await trio.sleep(0.4)
            os.close(descriptor)
            opened.remove(descriptor)
            yield AgentResponse(content="Done.")

        return generate

    try:
        report = broken(agent(generator))
        assert breaches(report) == {"1 file descriptors are left open"}
        assert all("in generate" in r.point.where or r.turns_cut for r in report.broken)
    finally:
        for descriptor in opened:
            os.close(descriptor)


def test_a_task_left_behind_is_found():
    """A task that does not end with its call is named, with the line where it waits."""

    def generator(call: Call) -> Generate:
        async def generate(message: Message) -> AsyncIterator[object]:
            trio.lowlevel.spawn_system_task(trio.sleep_forever, name="left one")
            yield AgentResponse(content="Done.")

        return generate

    with pytest.raises(AssertionError, match="the task 'left one' is left, in"):
        interrupt_everywhere(agent(generator), one_question, audio=False)


def test_a_failing_stage_is_found():
    """An error that only an interrupt brings about."""

    def generator(call: Call) -> Generate:
        async def generate(message: Message) -> AsyncIterator[object]:
            try:
                await trio.sleep(0.4)
            finally:
                if trio.current_effective_deadline() == -math.inf:
                    raise ValueError("while cleaning up")
            yield AgentResponse(content="Done.")

        return generate

    report = broken(agent(generator))
    (breach,) = breaches(report)
    assert breach.startswith("an error was logged: stage_failed")
    assert "ValueError" in breach


def test_an_agent_that_fails_anyway_breaks_the_scenario():
    """Without an interrupt every error that is not expected is a breach; others are allowed."""

    def generator(call: Call) -> Generate:
        async def generate(message: Message) -> AsyncIterator[object]:
            yield AgentResponse(content="Done.")
            try:
                await trio.sleep(0.4)
            finally:
                if trio.current_effective_deadline() == -math.inf:
                    raise KeyError("only when it is cut")
            raise ValueError("always")

        return generate

    options: dict[str, Any] = {"audio": False, "limit": 8}
    with pytest.raises(AssertionError, match=r"without an interrupt:\n.*ValueError\('always'\)"):
        interrupt_everywhere(agent(generator), one_question, **options)
    report = broken(agent(generator), expect_errors=ValueError, limit=8)
    assert all("KeyError" in breach for breach in breaches(report))
    allowed = (ValueError, KeyError)
    assert interrupt_everywhere(
        agent(generator), one_question, expect_errors=allowed, **options
    ).cut
    with pytest.raises(TypeError, match="expect_errors= is True"):
        interrupt_everywhere(sound, one_question, expect_errors=3)  # type: ignore[arg-type]


def test_a_tool_without_a_result_is_found():
    """A call that an interrupt leaves without its result."""

    def generator(call: Call) -> Generate:
        async def generate(message: Message) -> AsyncIterator[object]:
            call.router.publish_detached(ToolCall(id="t1", name="look"), "agent")
            await trio.sleep(0.4)
            call.router.publish_detached(ToolResult(id="t1", name="look", content="x"), "agent")
            yield AgentResponse(content="Done.")

        return generate

    async def scenario(caller: Caller) -> None:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()

    report = broken(agent(generator), scenario, probe=None)
    assert "look 't1' has 0 results for 1 calls" in breaches(report)
    assert "the history has no result of look 't1'" in breaches(report)


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


# --- any interrupt, any agent -------------------------------------------------------------------


def says_wait(caller: Caller) -> None:
    """Begin to speak, and stop half a second later."""

    async def speak() -> None:
        await caller.says("wait", takes_s=0.5)

    caller.call.nursery.start_soon(speak)


@pytest.mark.parametrize(
    "interrupt",
    [
        barge_in,
        says_wait,
        lambda caller: caller.publish(EmergencyStop()),
        lambda caller: caller.publish(DTMFInput(button="1")),
        lambda caller: caller.publish(UserTranscriptionReceived(content="by the way")),
        lambda caller: caller.call.router.cut_all("a test"),
    ],
    ids=["barge-in", "a word", "emergency stop", "nothing", "words", "all runs"],
)
@pytest.mark.parametrize("audio", [True, False], ids=["voice", "text"])
def test_the_laws_hold_for_any_interrupt(interrupt, audio):
    """Two agents, one after the other, whatever comes in between."""

    async def scenario(caller: Caller) -> None:
        await one_question(caller)
        caller.call.hand_over("agent1")
        await one_question(caller)

    answer = App(agent(two_sentences, two_sentences))
    report = interrupt_everywhere(answer, scenario, interrupt=interrupt, audio=audio, limit=5)
    assert report.drifted == 0


SAID = "One sentence. And another."

BREACHES = {
    "the call is over": (
        lambda caller: caller.call.end(),
        "the call has ended: 'ended'",
    ),
    "the call is left at work": (
        lambda caller: caller.publish(UserStoppedSpeaking()),
        "the call is 'speaking' though nothing is to come",
    ),
    "words are lost": (
        lambda caller: caller.said.insert(0, "lost"),
        "the history has lost the user's 'lost', or its place",
    ),
    "words are in another order": (
        lambda caller: caller.said.insert(0, "Well?") or caller.call.history.add_user("And?"),
        "the history has lost the user's 'Well?', or its place",
    ),
    "more is heard than was said": (
        lambda caller: caller.call.history.set_agent(1, "agent", SAID, SAID + "!", "clock"),
        f"turn 1 has heard {SAID + '!'!r} of {SAID!r}",
    ),
    "what was heard is taken back": (
        lambda caller: caller.call.history.set_agent(1, "agent", SAID, "One", "clock"),
        f"turn 1 had been heard as {SAID!r}",
    ),
    "a second end": (
        lambda caller: tell(caller, TurnEnded(turn=1, agent="agent", outcome="completed")),
        "turn 1 has 2 TurnEnded",
    ),
    "no end": (
        lambda caller: tell(caller, AgentGenerationComplete(turn=9, outcome="completed")),
        "turn 9 has no TurnEnded",
    ),
    "audio after the cut": (
        lambda caller: (caller._line.clear(3, "a cut"), caller._line.play(3, bytes(2))),
        "audio of utterance 3 was played after it was cut",
    ),
    "a message of a cut run": (
        lambda caller: caller._line.send(stale_message(caller)),
        "'agent.response' of a run that was cut reached the caller",
    ),
    "two results": (
        lambda caller: tell(
            caller, ToolCall(name="look", id="1"), *2 * [ToolResult(name="look", id="1")]
        ),
        "look '1' has 2 results for 1 calls",
    ),
    "no result": (
        lambda caller: tell(caller, ToolCall(name="look", id="1")),
        "the history has no result of look '1'",
    ),
}


def tell(caller: Caller, *events: object) -> None:
    for event in events:
        caller.call.router.publish_detached(event, "agent")


def stale_message(caller: Caller) -> Message:
    """Return a message of a run that is cut after it was published."""
    message = caller.publish(UserStoppedSpeaking())
    run = next(run for route in caller.call.router.routes for run in route.runs)
    run.cut(reason="a test")
    return Message(AgentResponse(content="late"), "agent", message.id, message.at_s, run)


def break_after(break_it: Callable[[Caller], object], interrupt: Any = len) -> dict[str, Any]:
    """Return what breaks each call that is interrupted, once its scenario is over."""
    interrupted: list[Caller] = []

    def note(caller: Caller) -> None:
        interrupted.append(caller)
        if interrupt is not len:
            interrupt(caller)

    async def probe(caller: Caller) -> None:
        if caller in interrupted:
            break_it(caller)

    return {"interrupt": note, "probe": probe, "audio": True}


@pytest.mark.parametrize("breach", BREACHES)
def test_each_breach_is_found(breach):
    """A call that goes well is then broken, in one way, and the laws say in which."""
    break_it, told = BREACHES[breach]
    found = breaches(broken(agent(once), **break_after(break_it)))
    assert any(text.startswith(told) for text in found), found


def test_a_turn_that_grows_after_its_cut_is_found():
    """What is told of a turn that was cut is its last word."""

    def grow(caller: Caller) -> None:
        entry = next((e for e in caller.call.history if e.role == "agent"), None)
        if entry is not None and entry.interruption is not None:
            caller.call.history.set_agent(1, "agent", SAID, entry.heard, "clock")

    found = breaches(broken(sound, **break_after(grow, barge_in)))
    assert any(text.startswith("turn 1 grew after it was cut") for text in found), found


def test_asks_on_fails_when_nobody_answers():
    """An agent without routes answers nothing."""

    async def answer(call: Call) -> None:
        call.bridge(name="agent")

    with pytest.raises(AssertionError, match=r"an interrupt:\n  probe= raised .* not answer"):
        interrupt_everywhere(answer, one_question, audio=False)
    assert asks_on.__doc__
