"""The native protocol of a call: events become messages, and messages what the call is told."""

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pydantic
import pytest
import trio
from structlog.testing import capture_logs

from bargein import Event
from bargein.events import (
    AgentError,
    AgentResponse,
    AgentSpeechCut,
    AgentSpeechSent,
    AgentTextComplete,
    AgentUtteranceQueued,
    CallStarted,
    EmergencyStop,
    StateChanged,
    ToolCall,
    ToolResult,
    TransferCall,
    TurnLikelyOver,
    UserAudio,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
    VoiceWords,
)
from bargein.protocol import ErrorMessage, OtherEvent, PlaybackReport, Spoken, encode
from bargein.server import Limits


@asynccontextmanager
async def opened(serving, **options):
    """Open a call by text with an agent that says nothing."""
    calls = []

    async def answer(call):
        calls.append(call)
        call.bridge(name="agent")

    async with serving(answer, **options) as place, place.call(mode="text") as caller:
        await trio.sleep(1)
        yield calls[0], caller


class Order(Event):
    """An event of a user's own."""

    drink: str


class Inner(pydantic.BaseModel):
    """Routed, but no Event."""

    drink: str


@dataclass
class Level:
    """A dataclass event with bytes."""

    db: int
    raw: bytes


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (
            AgentResponse(content="hi"),
            {"type": "transcript", "role": "agent", "text": "hi", "final": True, "utterance": 1},
        ),
        (
            UserTranscriptionReceived(content="h", final=False),
            {"type": "transcript", "role": "user", "text": "h", "final": False},
        ),
        (
            UserTranscriptionReceived(content="un th\u00e9", language="fr"),
            {
                "type": "transcript",
                "role": "user",
                "text": "un th\u00e9",
                "final": True,
                "language": "fr",
            },
        ),
        (
            AgentSpeechSent(content="hi", utterance=2),
            {"type": "spoken", "utterance": 2, "text": "hi"},
        ),
        (
            AgentSpeechCut(utterance=2, heard="a", unheard="b", at_ms=9, basis="words"),
            {"type": "cut", "utterance": 2, "heard": "a", "rest": "b", "at_ms": 9.0},
        ),
        (AgentUtteranceQueued(utterance=2), {"type": "utterance.end", "utterance": 2}),
        (
            StateChanged(state="tool", number=3),
            {"type": "state", "state": "tool", "number": 3},
        ),
        (
            AgentError(message="KeyError in map"),
            {"type": "error", "code": "agent_error", "message": "KeyError in map"},
        ),
        (
            ToolCall(name="t", arguments={"a": 1}, id="1"),
            {
                "type": "event",
                "name": "agent.tool_call",
                "data": {"name": "t", "arguments": {"a": 1}, "id": "1"},
            },
        ),
        (
            TransferCall(target_phone_number="+1", briefing="The caller owes us money."),
            {
                "type": "event",
                "name": "call.transfer",
                "data": {
                    "target_phone_number": "+1",
                    "announce": "",
                    "if_interrupted": "continue",
                },
            },
        ),
        (UserStartedSpeaking(), {"type": "event", "name": "user.started_speaking", "data": {}}),
        (Order(drink="tea"), {"type": "event", "name": "order", "data": {"drink": "tea"}}),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_an_event_has_its_message(serving, autojump_clock, event, message):
    """Each event is told in the protocol's words."""
    async with opened(serving) as (call, caller):
        call.router.publish_detached(event, "agent")
        await trio.sleep(1)
    told = [json.loads(encode(each.message)) for each in caller.received]
    assert message in told


async def test_what_an_agent_says_carries_its_utterance(serving, autojump_clock):
    """Where only text travels, each text comes with its number, before it counts as spoken."""

    async def two_texts(message):
        yield AgentResponse(content="one ")
        await trio.sleep(1)  # words that follow each other at once are one message
        yield AgentResponse(content="two")

    async def answer(call):
        agent = call.bridge(name="agent")
        agent.on(CallStarted).map(lambda _: AgentResponse(content="hello")).broadcast()
        agent.on(UserStoppedSpeaking).stream(two_texts).broadcast()

    async with serving(answer) as place, place.call(mode="text") as caller:
        caller.write("hi")
        await trio.sleep(3)
    told = [each.message for each in caller.received]
    said = [m for m in told if isinstance(m, Spoken) or getattr(m, "role", "") == "agent"]
    assert [(m.type, m.utterance, m.text) for m in said] == [
        ("transcript", 1, "hello"), ("spoken", 1, "hello"),
        ("transcript", 2, "one "), ("spoken", 2, "one "),
        ("transcript", 2, "two"), ("spoken", 2, "two"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "event",
    [
        UserAudio(pcm=b"12"),
        AgentTextComplete(utterance=1),
        VoiceWords(content="the neighbours"),
        TurnLikelyOver(content="the neighbours"),
        Inner(drink="tea"),
        Level(db=3, raw=b"x"),
    ],
    ids=repr,
)
async def test_what_is_not_for_the_caller_is_not_told(serving, autojump_clock, event):
    """Audio, and what the call, its ears and its voice tell each other, stays inside."""
    async with opened(serving) as (call, caller):
        before = len(caller.received)
        call.router.publish_detached(event, "agent")
        await trio.sleep(1)
        assert caller.received[before:] == []


async def test_an_event_that_json_cannot_carry_is_left_out(serving, autojump_clock):
    """One such event does not stop the next, and the log names it."""

    class Odd(Event):
        what: object

    async with opened(serving) as (call, caller):
        before = len(caller.received)
        with capture_logs() as logs:
            for event in (Odd(what=object()), Order(drink="\ud800"), Order(drink="tea")):
                call.router.publish_detached(event, "agent")
            await trio.sleep(1)
        told = [told.message.data for told in caller.received[before:]]
    assert told == [{"drink": "\ufffd"}, {"drink": "tea"}]  # what UTF-8 cannot hold is replaced
    left_out = [line["name"] for line in logs if line["event"] == "event_not_serializable"]
    assert left_out == ["odd"]


async def test_typed_words_are_a_turn(serving, autojump_clock):
    """Typed text starts to speak, says it, and stops, in this order."""
    async with opened(serving) as (call, caller):
        told = []
        call.router.add_sink(lambda message: told.append(type(message.event)))
        caller.write("hi")
        await trio.sleep(1)
    user = [UserStartedSpeaking, UserTranscriptionReceived, UserStoppedSpeaking]
    assert [kind for kind in told if kind in user] == user


async def test_the_stop_key_is_an_emergency_stop(serving, autojump_clock):
    """Stop becomes EmergencyStop."""
    async with opened(serving) as (call, caller):
        told = []
        call.router.add_sink(lambda message: told.append(message.event), EmergencyStop)
        caller.stop()
        await trio.sleep(1)
    assert told == [EmergencyStop(reason="stop_key")]


async def test_reports_of_unknown_utterances_are_refused(serving, autojump_clock):
    """A client cannot have played what was never sent."""
    report = PlaybackReport(type="playback.position", utterance=1, played_ms=20, request=4)
    async with opened(serving) as (_, caller):
        caller.send_raw(encode(report))
        error = (await caller.wait_for(ErrorMessage)).message
    assert "no audio of utterance 1" in error.message
    assert error.request == 4


@pytest.mark.parametrize("watch", ["off", "events", "words"])
async def test_only_who_may_see_words_gets_the_text_of_an_error(serving, autojump_clock, watch):
    """The developer's page is told what an exception said and where; a caller's is not."""
    async with opened(serving, limits=Limits(watch=watch)) as (call, caller):
        error = AgentError(message="KeyError in map", detail="'my number'")
        call.router.publish_detached(error, "agent")
        call.router.publish_detached(ToolResult(name="t", detail="my number"), "agent")
        told = (await caller.wait_for(ErrorMessage)).message
        result = (await caller.wait_for(OtherEvent)).message
    assert told.message == "KeyError in map"
    assert told.detail == ("'my number'" if watch == "words" else None)
    assert "detail" not in result.data
