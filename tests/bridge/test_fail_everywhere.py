"""A transport that raises costs a call no more than what it was told to do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog.testing
import trio

from bargein import App, Call, Message
from bargein.events import (
    AgentAudio,
    AgentResponse,
    AnswerEnded,
    EndCall,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.testing import Caller, Report, fail_everywhere


async def answer(call: Call) -> None:
    """Two sentences for each turn of the caller, and a greeting."""

    async def generate(message: Message) -> AsyncIterator[object]:
        await trio.sleep(0.2)
        yield AgentResponse(content="One sentence. ")
        await trio.sleep(0.2)
        yield AgentResponse(content="And another.")

    (
        call.bridge(name="agent")
        .on(UserStoppedSpeaking)
        .interrupt_on(UserStartedSpeaking)
        .stream(generate)
        .broadcast()
    )
    await call.say("Hello.")


async def barges_in_and_pauses(caller: Caller) -> None:
    """Every call that a transport knows: an answer, a barge-in, a hold, and a release."""
    await caller.quiet()
    await caller.says("Well?", takes_s=1.0)
    await trio.sleep(1.0)
    await caller.says("No, wait.", takes_s=1.0)
    await trio.sleep(1.0)
    caller.call.handle.pause()
    await trio.sleep(1.0)
    caller.call.handle.resume()
    await caller.quiet()


async def says_and_stops(caller: Caller) -> None:
    """What waits for a text to be heard comes back, also when it is stopped."""
    handle = caller.call.say("This is a long text, and nobody hears its end.")
    await trio.sleep(1.0)
    caller.call.handle.emergency_stop()
    await handle
    await caller.call.say("Goodbye.")
    await caller.call.answers.silence()


async def hangs_up(caller: Caller) -> None:
    await caller.says("Well?", takes_s=1.0)
    await trio.sleep(0.5)
    caller.call.publish(EndCall())
    await caller.call.ended.wait()


def methods(report: Report) -> set[str]:
    return {run.point.where for run in report.tried}


@pytest.mark.proof
@pytest.mark.parametrize("holds", [True, False], ids=["holds", "clears"])
def test_each_call_of_a_transport_may_raise(holds):
    """Each answer ends once and the next turn works, whichever call raised."""
    report = fail_everywhere(answer, barges_in_and_pauses, holds=holds, limit=60)
    assert methods(report) == {"send", "play", "clear"} | ({"hold"} if holds else set())
    assert report.points > len(report.tried) == 60
    assert report.drifted == 0


@pytest.mark.proof
def test_a_text_call_bears_every_fault_too():
    """Where only text travels, a transport sends and nothing else."""
    report = fail_everywhere(answer, barges_in_and_pauses, audio=False)
    assert methods(report) == {"send"}
    assert len(report.tried) == report.points


@pytest.mark.proof
def test_whoever_waits_for_a_text_is_let_go():
    """say() and silence() come back when the transport raised while the text was cut."""
    report = fail_everywhere(answer, says_and_stops)
    assert "clear" in methods(report)
    assert len(report.tried) == report.points


@pytest.mark.proof
def test_a_call_ends_whatever_its_transport_does():
    """EndCall ends the call, and so does hanging up, also when the last sounds raise."""
    report = fail_everywhere(answer, hangs_up, probe=None)
    assert any("send(call.ended)" in str(run.point) for run in report.tried)


def test_what_a_scenario_does_not_bear_is_told():
    """The report names the call that raised, and what was wrong."""

    async def scenario(caller: Caller) -> None:
        await caller.says("Well?", takes_s=1.0)
        await caller.quiet()

    def minds(caller: Caller) -> None:
        assert len(caller.events(AnswerEnded)) > 9, "it minds"

    with pytest.raises(AssertionError, match="the scenario breaks without a fault"):
        fail_everywhere(answer, scenario, check=minds, audio=False)

    runs = iter(range(10))

    def minds_later(caller: Caller) -> None:
        assert next(runs) < 2, "it minds"

    with pytest.raises(AssertionError, match="1 of 2 faults broke the scenario") as caught:
        fail_everywhere(answer, scenario, check=minds_later, audio=False, limit=2)
    assert "raised in call " in str(caught.value)
    assert "of the transport, at " in str(caught.value)


async def test_it_runs_trio_itself():
    """An async test cannot call it."""
    with pytest.raises(RuntimeError, match=r"fail_everywhere\(\) runs trio itself"):
        fail_everywhere(answer, barges_in_and_pauses)


class Player:
    """A transport for audio whose player is gone after a while."""

    audio = True
    sample_rate_hz = 16_000

    def __init__(self) -> None:
        self.is_gone = False
        self.messages: list[Message] = []
        self.played = 0

    def send(self, message: Message) -> None:
        self.messages.append(message)

    def play(self, utterance: int, pcm: bytes) -> None:
        self._fail()
        self.played += 1

    def clear(self, utterance: int, reason: str) -> None:
        self._fail()

    def _fail(self) -> None:
        if self.is_gone:
            raise OSError("the player is gone")


def speaks(call: Call) -> None:
    """Give each text its audio: a second of it."""

    def voice(message: Message) -> Any:
        utterance = call.answers.utterance_of(message)
        assert utterance is not None
        pcm = bytes(32_000)
        audio = AgentAudio(pcm=pcm, sample_rate_hz=16_000, utterance=utterance.number, last=True)
        call.router.publish_detached(audio, "voice")

    call.bridge(name="voice", is_agent=False).on(AgentResponse).map(voice)


async def talks(call: Call) -> None:
    speaks(call)
    call.bridge(name="agent")


async def test_a_player_that_raises_is_told_once(autojump_clock):
    """One line tells that it fails, and one how often it did when it plays again."""
    player = Player()
    with structlog.testing.capture_logs() as logs:
        async with App(talks).open_call(player) as call:
            player.is_gone = True
            assert await call.say("Is anybody there?"), "nobody says that it was not heard"
            assert not player.played
            player.is_gone = False
            await call.say("Is anybody there?")
            chunks = player.played
            assert chunks > 1
    told = [entry for entry in logs if "transport" in entry]
    assert [entry["event"] for entry in told] == ["transport_failed", "works_again"]
    assert told[0]["transport"] == told[1]["transport"] == "Player"
    assert told[0]["method"] == told[1]["stage"] == "play"
    assert isinstance(told[0]["exc_info"], OSError)
    assert told[1]["withheld"] == chunks - 1, "the first was told"
