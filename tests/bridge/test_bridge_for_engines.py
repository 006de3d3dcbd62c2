"""What an ear or a voice finds on its bridge, without the engine behind it."""

from __future__ import annotations

import math

import pytest
import trio
import trio.testing

from bargein import Bridge, Call
from bargein.events import (
    AgentError,
    AgentResponse,
    AgentSpeechHeld,
    AgentSpeechReleased,
    LogMetric,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.testing import open_call


class Voice:
    """Notes what it is told of the text that it would say."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self.numbers: list[int | None] = []
        bridge.on(AgentResponse).map(self._take)

    def _take(self, message) -> None:
        self.numbers.append(self.bridge.utterance_of(message))
        assert self.bridge.is_audible(message)


async def two_sentences(message):
    """Say two sentences."""
    yield AgentResponse(content="One two three. ")
    await trio.sleep(1)
    yield AgentResponse(content="Four five six.")


@pytest.fixture
def engines():
    """What the engines of the call under test keep."""
    return {}


@pytest.fixture
async def caller(engines):
    async def answer(call: Call) -> None:
        engines["voice"] = Voice(call.bridge(name="second_voice", is_agent=False))
        agent = call.bridge(name="agent").on(UserStoppedSpeaking)
        agent.interrupt_on(UserStartedSpeaking).stream(two_sentences).broadcast()

    async with open_call(answer, chars_per_s=10, expect_errors=ValueError) as caller:
        yield caller


async def test_a_voice_knows_what_it_says_and_how_far_it_is_heard(caller, engines, autojump_clock):
    """The number comes with the text, the position grows, and is gone once it was heard."""
    bridge = engines["voice"].bridge
    await caller.says("Hello.")
    await trio.sleep(0.6)
    assert engines["voice"].numbers == [1]
    assert bridge.played_ms(1) == pytest.approx(600, abs=50)
    assert bridge.output_rate_hz == caller.call.output_rate_hz
    await caller.quiet()
    assert engines["voice"].numbers == [1, 1]
    assert bridge.played_ms(1) is None


async def test_a_cut_ends_the_position_and_stales_only_what_belongs_to_the_run(
    caller, engines, autojump_clock
):
    """What is published for a cut run reaches nobody; what is detached reaches everybody."""
    bridge = engines["voice"].bridge
    texts: list = []
    caller.call.bridge(name="log", is_agent=False).on(AgentResponse, source="agent").map(
        texts.append
    )
    await caller.says("Hello.")
    await trio.sleep(0.5)
    caller.call.publish(UserStartedSpeaking())
    assert bridge.played_ms(1) is None
    bridge.publish_for(LogMetric(name="of the run", value=1.0), texts[0])
    bridge.publish_detached(LogMetric(name="a fact", value=1.0))
    assert [event.name for event in caller.events(LogMetric)] == ["a fact"]


async def test_an_error_that_an_engine_survives_is_shown_to_developers(
    caller, engines, autojump_clock
):
    """The listeners of the call get it; the caller's side is told nothing."""
    shown: list[Exception] = []
    caller.call.observe_errors(shown.append)
    error = ValueError("no sound")
    engines["voice"].bridge.report_error(error)
    assert shown == [error]
    assert not caller.events(AgentError)


async def never() -> None:
    """Not called in time: a timer does not await."""


SAID = AgentResponse(content="One.")

MISTAKES = [
    (lambda b: b.call_at("x", print), r"call_at\(\) at_s= is seconds of trio's clock, not 'x'"),
    (lambda b: b.call_at(True, print), r"call_at\(\) at_s= is seconds of trio's clock, not True"),
    (lambda b: b.call_at(math.nan, print), r"call_at\(\) at_s= .* not nan"),
    (lambda b: b.call_at(3, 3), r"call_at\(\) fn= is a plain function .* not 3"),
    (lambda b: b.call_at(math.inf, None), r"call_at\(\) fn= is a plain function .* not None"),
    (lambda b: b.call_at(3, never), r"call_at\(\) fn= is a plain function .* not <function never"),
    (lambda b: b.hold_speech(3), r"hold_speech\(\) reason= is a string, not 3"),
    (lambda b: b.publish_for(SAID, SAID), r"publish_for\(\) message= is the Message .* not Agent"),
    (lambda b: b.report_error("late"), r"report_error\(\) error= is an exception, not 'late'"),
    (lambda b: b.say_notice(3), r"say_notice\(\) text= is a string, not 3"),
    (lambda b: b.is_notice(SAID), r"is_notice\(\) message= is the Message .* not AgentResponse"),
    (lambda b: b.is_audible(SAID), r"is_audible\(\) message= is the Message .* not AgentResponse"),
    (lambda b: b.needs_voice(None), r"needs_voice\(\) message= is the Message .* not None"),
    (lambda b: b.utterance_of(SAID), r"utterance_of\(\) message= is the Message .* not Agent"),
]


IDS = [told.partition("\\")[0] for _, told in MISTAKES]


@pytest.mark.parametrize(("mistake", "told"), MISTAKES, ids=IDS)
async def test_a_wrong_argument_is_named_with_its_function(
    caller, engines, autojump_clock, mistake, told
):
    """Not later, by the clock or by an attribute of what is no message."""
    await trio.testing.wait_all_tasks_blocked()
    with pytest.raises((TypeError, ValueError), match=told):
        mistake(engines["voice"].bridge)


async def test_a_bridge_has_one_timer(caller, engines, autojump_clock):
    """The last call sets it; infinity takes it away."""
    bridge, rang = engines["voice"].bridge, []
    now_s = trio.current_time()
    bridge.call_at(now_s + 1, lambda: rang.append("first"))
    bridge.call_at(now_s + 2, lambda: rang.append(trio.current_time()))
    await trio.sleep(3)
    assert rang == [now_s + 2]
    bridge.call_at(now_s + 4, lambda: rang.append("late"))
    bridge.call_at(math.inf, lambda: rang.append("never"))
    await trio.sleep(3)
    assert rang == [now_s + 2]


async def test_an_engine_holds_and_releases_the_agents_voice(caller, engines, autojump_clock):
    """The voice stands still for the reason that the engine gives, and goes on at the release."""
    bridge = engines["voice"].bridge
    await caller.says("Hello.")
    await trio.sleep(0.5)
    bridge.hold_speech("doorbell")
    held_at_ms = bridge.played_ms(1)
    await trio.sleep(2)
    assert bridge.played_ms(1) == held_at_ms
    bridge.release_speech("doorbell")
    await caller.quiet()
    [held], [_] = caller.events(AgentSpeechHeld), caller.events(AgentSpeechReleased)
    assert held.reason == "doorbell"
    assert bridge.call_id == caller.call.call_id


async def test_a_turn_taker_sees_what_the_agent_does(caller, engines, autojump_clock):
    """The status is that of the moment: idle, at work and heard, and idle again."""
    agent = engines["voice"].bridge.agent_status
    assert (agent.name, agent.state, agent.route) == ("agent", "idle", "")
    assert not (agent.is_at_work)
    assert not (agent.is_audible)
    assert not (agent.may_be_cut_by(UserStartedSpeaking))
    await caller.says("Hello.")
    await trio.sleep(0.5)
    assert agent.is_at_work
    assert agent.is_audible
    assert agent.state == "speaking"
    assert "two_sentences" in agent.route
    assert "One two three" in agent.saying
    assert agent.may_be_cut_by(UserStartedSpeaking)
    await caller.quiet()
    assert not (agent.is_at_work)
    assert not (agent.is_audible)
