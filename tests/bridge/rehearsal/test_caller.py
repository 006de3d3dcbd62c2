"""Tests of the simulated caller, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import trio

from bargein import App, Call
from bargein.events import AgentError
from bargein.rehearsal import (
    Cue,
    Microphone,
    ScriptLine,
    SimulatedCaller,
    agent_falls_silent,
    agent_has_spoken,
)

Ring = Callable[..., Any]
Clock = trio.testing.MockClock


class Watcher:
    """Takes down what it is told."""

    def __init__(self) -> None:
        self.lines: list[tuple[float, str]] = []
        self.received = 0
        self.ticks = 0

    def line(self, at_s: float, line: ScriptLine) -> None:
        self.lines.append((at_s, line.text))

    def messages(self, messages: Sequence[object]) -> None:
        self.received += len(messages)

    def tick(self, at_s: float, hearing: object) -> None:
        self.ticks += 1


async def talk(
    ring: Ring,
    app: App,
    speak: Callable[[str], Any],
    script: tuple[ScriptLine, ...],
    answer_s: float = 9,
) -> tuple[SimulatedCaller, Watcher]:
    """Hold a conversation, and return what is left of it."""
    listener, microphone = Watcher(), Microphone()
    async with ring(app, microphone=microphone.next_frame) as caller:
        simulated = SimulatedCaller(caller, microphone, listener)
        await simulated.run([(line, await speak(line.text)) for line in script], answer_s)
        assert listener.received == len(caller.received)
    return simulated, listener


ORDER = (
    ScriptLine("large latte", agent_falls_silent(0.3)),
    ScriptLine("no wait", agent_has_spoken(0.5), interrupts=True),
    ScriptLine("thanks", agent_falls_silent(0.3)),
)
TEXTS = tuple(line.text for line in ORDER)


async def test_every_line_is_said_at_its_moment(
    autojump_clock: Clock, ring: Ring, make_app: Callable[..., App], speak: Callable[[str], Any]
) -> None:
    """The caller speaks on cue, talks over the agent, and leaves when the agent ends the call."""
    simulated, listener = await talk(ring, make_app(TEXTS), speak, ORDER)
    assert simulated.problems == []
    assert [text for _, text in listener.lines] == list(TEXTS)
    assert [spoken.line for spoken in simulated.spoken] == list(ORDER)
    heard = {span.utterance: len(span.pcm) / 48_000 for span in simulated.heard}
    assert list(heard) == [1, 2, 3, 4]
    assert 0.5 <= heard[2] <= 0.7
    first = next(span.at_s for span in simulated.heard if span.utterance == 2)
    assert listener.lines[1][0] == pytest.approx(first + 0.5, abs=0.03)
    assert listener.ticks > 50


async def test_a_moment_that_never_comes_ends_the_call(
    autojump_clock: Clock, ring: Ring, make_app: Callable[..., App], speak: Callable[[str], Any]
) -> None:
    """The wait is bounded, and the problem says what was waited for and what was found."""
    script = (ScriptLine("hello", Cue("it sings", lambda now: False), deadline_s=7), *ORDER)
    simulated, listener = await talk(ring, make_app(TEXTS), speak, script)
    assert listener.lines == []
    assert 7 <= trio.current_time() < 8
    (problem,) = simulated.problems
    assert problem.startswith(
        "line 1, 'hello', was never said: waited until it sings; nothing after 7 s "
        "(spoken 0.1 s, silent 6."
    )


async def test_a_call_that_ends_too_early_is_a_problem(
    autojump_clock: Clock, ring: Ring, make_app: Callable[..., App], speak: Callable[[str], Any]
) -> None:
    """If the agent ends the call before a line, that line is named; nothing hangs."""
    extra = ScriptLine("one more", agent_falls_silent())
    simulated, _ = await talk(ring, make_app(TEXTS), speak, (*ORDER, extra))
    assert len(simulated.problems) == 1
    assert "line 4, 'one more', was never said" in simulated.problems[0]
    assert "the call ended ('agent_ended')" in simulated.problems[0]


async def test_a_call_that_ends_in_mid_line_is_a_problem(
    autojump_clock: Clock, ring: Ring, make_app: Callable[..., App], speak: Callable[[str], Any]
) -> None:
    """If the call ends while a line is said, that line is named."""
    app = make_app(("x",) * 9)

    async def answer(call: Call) -> None:
        await trio.sleep(1)
        call.end("busy")

    app.answer = answer
    script = (ScriptLine("a long line " * 9, Cue("now", lambda now: True)),)
    simulated, _ = await talk(ring, app, speak, script)
    assert simulated.problems == [f"line 1, {script[0].text!r}: the call ended while it was said"]
    assert trio.current_time() < 1.5


@pytest.mark.parametrize(("answers", "ends_s"), [(True, 5.5), (False, 9.5)])
async def test_the_caller_hangs_up_when_the_agent_does_not(
    autojump_clock: Clock,
    ring: Ring,
    make_app: Callable[..., App],
    speak: Callable[[str], Any],
    answers: bool,
    ends_s: float,
) -> None:
    """The caller lingers for 3 s after the last answer; without one, until the deadline."""
    app = make_app(("hello",))
    if not answers:
        app.answer = _say_nothing
    script = (ScriptLine("hello", Cue("half a second has passed", _after_half_a_second)),)
    simulated, _ = await talk(ring, app, speak, script)
    assert simulated.problems == []
    assert trio.current_time() == pytest.approx(ends_s, abs=1.0)


def _after_half_a_second(now: Any) -> bool:
    return bool(now.silent_s >= 0.3)


async def _say_nothing(call: Call) -> None:
    await trio.lowlevel.checkpoint()


async def test_errors_that_the_server_tells_are_problems(
    autojump_clock: Clock, ring: Ring, make_app: Callable[..., App], speak: Callable[[str], Any]
) -> None:
    """An error of the agent's is kept, though the call goes on."""
    app = make_app(TEXTS)
    answer = app.answer

    async def fail_first(call: Call) -> None:
        call.publish(AgentError(message="KeyError in brew"), source="call")
        await answer(call)

    app.answer = fail_first
    simulated, listener = await talk(ring, app, speak, ORDER)
    assert simulated.problems == ["the server reported agent_error: KeyError in brew"]
    assert len(listener.lines) == 3
