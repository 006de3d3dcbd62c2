"""The native transport: events to messages, fences, and messages to the call."""

import json
from dataclasses import dataclass

import pydantic
import pytest
import trio

from bargein import App, Event, Message
from bargein.bridge.server._native_transport import NativeTransport
from bargein.bridge.server._outbox import Outbox
from bargein.events import (
    AgentAudio,
    AgentAudioComplete,
    AgentError,
    AgentResponse,
    AgentSpeechCut,
    AgentSpeechSent,
    AgentTextComplete,
    AgentUtteranceQueued,
    CallEnded,
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
from bargein.protocol import PlaybackReport, ProtocolViolationError, Stop, TextInput, decode_server
from bargein.server import Metrics


class FakeCall:
    """Keeps what it is told."""

    def __init__(self):
        self.told = []

    def publish(self, event):
        self.told.append(event)

    def report_playback(self, *report):
        self.told.append(report)


class Line:
    """A transport and what it sends, once `flush` is called."""

    def __init__(self, *, audio=True, watch="events"):
        self.sent = []
        self.metrics = Metrics()
        self.outbox = Outbox()
        self.transport = NativeTransport(self.outbox, self.metrics, audio=audio, watch=watch)

    def flush(self):
        while (data := self.outbox.next()) is not None:
            self.sent.append(decode_server(data))
        return [getattr(m, "type", "audio") for m in self.sent]


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
            {"type": "transcript", "role": "agent", "text": "hi", "final": True},
        ),
        (
            UserTranscriptionReceived(content="h", final=False),
            {"type": "transcript", "role": "user", "text": "h", "final": False},
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
            TransferCall(target_phone_number="+1"),
            {"type": "event", "name": "call.transfer", "data": {"target_phone_number": "+1"}},
        ),
        (UserStartedSpeaking(), {"type": "event", "name": "user.started_speaking", "data": {}}),
        (Order(drink="tea"), {"type": "event", "name": "order", "data": {"drink": "tea"}}),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_an_event_has_its_message(event, message):
    """Each event is told in the protocol's words."""
    line = Line()
    line.transport.send(Message(event))
    assert json.loads(line.outbox.next()) == message
    assert line.outbox.next() is None


async def test_what_an_agent_says_carries_its_utterance():
    """Where only text travels, each text comes with its number, before it counts as spoken."""
    line = Line(audio=False)

    async def two_texts(message):
        yield AgentResponse(content="one ")
        yield AgentResponse(content="two")

    async def answer(call):
        agent = call.bridge(name="agent")
        agent.on(CallStarted).map(lambda _: AgentResponse(content="hello")).broadcast()
        agent.on(UserStoppedSpeaking).stream(two_texts).broadcast()

    async with App(answer).open_call(line.transport) as call:
        call.publish(UserStoppedSpeaking())
        await trio.testing.wait_all_tasks_blocked()
    line.flush()
    said = [m for m in line.sent if m.type in ("transcript", "spoken")]
    assert [(m.type, m.utterance, m.text) for m in said] == [
        ("transcript", 1, "hello"), ("spoken", 1, "hello"),
        ("transcript", 2, "one two"), ("spoken", 2, "one two"),
    ]  # fmt: skip


async def test_the_end_of_what_is_given_again_carries_its_fresh_number(autojump_clock):
    """The player is told the end of the number by which it has the audio; texts keep theirs."""
    line = Line()

    async def one(message):
        yield AgentResponse(content="one")
        yield AgentAudio(bytes(24_000), 24_000, "one")
        yield AgentAudioComplete(utterance=1)

    async def answer(call):
        call.bridge(name="agent").on(UserStoppedSpeaking).stream(one).broadcast()

    async with App(answer).open_call(line.transport) as call:
        call.publish(UserStoppedSpeaking())
        await trio.sleep(0.1)
        call.speaking.resend()
        await trio.sleep(1)
    line.flush()
    told = [(getattr(m, "type", "audio"), getattr(m, "utterance", None)) for m in line.sent]
    assert [number for kind, number in told if kind == "audio"] == [2] * 7  # of 80 ms
    assert [about for about in told if about[0] in ("clear", "utterance.end", "spoken")] == [
        ("clear", 1), ("utterance.end", 2), ("spoken", 1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "event",
    [
        UserAudio(pcm=b"12"),
        AgentTextComplete(utterance=1),
        VoiceWords(content="the neighbours"),
        TurnLikelyOver(content="the neighbours"),
        CallEnded(),
        Inner(drink="tea"),
        Level(db=3, raw=b"x"),
    ],
    ids=repr,
)
async def test_what_is_not_for_the_caller_is_not_told(event):
    """Audio, and what the call, its ears and its voice tell each other, stays inside."""
    line = Line()
    line.transport.send(Message(event))
    assert line.flush() == []


async def test_an_event_that_json_cannot_carry_is_left_out():
    """One such event does not stop the next."""

    class Odd(pydantic.BaseModel):
        model_config = {"arbitrary_types_allowed": True}
        what: object

    line = Line()
    line.transport.send(Message(Odd(what=object())))
    line.transport.send(Message(AgentResponse(content="\ud800")))
    line.transport.send(Message(StateChanged(state="idle", number=1)))
    assert line.flush() == ["state"]


async def test_clear_goes_out_before_anything_and_leaves_no_audio_behind():
    """Queued audio at or below the fence is dropped, and late audio of it too."""
    line = Line()
    for utterance in (1, 2, 3):
        line.transport.play(utterance, b"\1\0" * 480)
    line.transport.clear(2, "barge-in")
    line.transport.play(2, b"\2\0")
    line.transport.play(3, b"\3\0")
    assert line.flush() == ["clear", "audio", "audio"]
    assert [m.utterance for m in line.sent[1:]] == [3, 3]
    assert line.metrics.frames_dropped == 3
    assert line.metrics.barge_ins == 1


async def test_a_hold_overtakes_what_waits_but_no_clear():
    """Holds and clears reach the client in their order, before all audio."""
    line = Line()
    line.transport.play(1, b"\1\0" * 480)
    line.transport.play(2, b"\1\0" * 480)
    line.transport.hold(True)
    line.transport.clear(1, "cancel")
    line.transport.hold(False)
    assert line.flush() == ["hold", "clear", "hold", "audio"]
    assert [m.on for m in line.sent if getattr(m, "type", "") == "hold"] == [True, False]


async def test_a_caller_who_reads_is_told_of_no_hold():
    """There is no player to hold where only text travels."""
    line = Line(audio=False)
    line.transport.hold(True)
    assert line.flush() == []


async def test_nothing_follows_ended():
    """Once the end is told, neither events nor audio are."""
    line = Line()
    line.transport.finish("hangup")
    line.transport.finish("other")
    line.transport.send(Message(StateChanged(state="closed", number=1)))
    line.transport.play(1, b"12")
    line.transport.hold(True)
    assert line.flush() == ["ended"]
    assert line.sent[0].reason == "hangup"


async def test_typed_words_are_a_turn():
    """Typed text starts to speak, says it, and stops, in this order."""
    call = FakeCall()
    Line().transport.receive(TextInput(text="hi"), call)
    assert [type(event).__name__ for event in call.told] == [
        "UserStartedSpeaking",
        "UserTranscriptionReceived",
        "UserStoppedSpeaking",
    ]


async def test_the_stop_key_is_an_emergency_stop():
    """Stop becomes EmergencyStop."""
    call = FakeCall()
    Line().transport.receive(Stop(), call)
    assert call.told == [EmergencyStop(reason="stop_key")]


async def test_reports_of_unknown_utterances_are_refused():
    """A client cannot have played what was never sent; what was, it may report."""
    line, call = Line(), FakeCall()
    report = PlaybackReport(type="playback.position", utterance=1, played_ms=20, request=4)
    with pytest.raises(ProtocolViolationError, match="no audio of utterance 1") as caught:
        line.transport.receive(report, call)
    assert caught.value.request == 4
    line.transport.play(1, b"12")
    line.transport.receive(report, call)
    assert call.told == [(1, 20.0, "position")]
    line.flush()


@pytest.mark.parametrize("watch", ["off", "events", "words"])
async def test_only_who_may_see_words_gets_the_text_of_an_error(watch):
    """The developer's page is told what an exception said and where; a caller's is not."""
    line = Line(watch=watch)
    error = AgentError(message="KeyError in map", detail="'my number'")
    line.transport.send(Message(error))
    line.transport.send(Message(ToolResult(name="t", detail="my number")))
    line.flush()
    assert line.sent[0].message == "KeyError in map"
    assert line.sent[0].detail == ("'my number'" if watch == "words" else None)
    assert "detail" not in line.sent[1].data
