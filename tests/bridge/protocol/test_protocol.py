"""The native protocol's codec, on bytes."""

import json
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bargein.client import (
    AgentFrame,
    Clear,
    Cut,
    Description,
    Ended,
    ErrorMessage,
    Hello,
    Hold,
    OtherEvent,
    Pong,
    Resumed,
    SnapshotMessage,
    Spoken,
    State,
    Transcript,
    UtteranceEnd,
    VerbReceipt,
    VerbSettled,
)
from bargein.protocol import (
    AnswerPermission,
    AnswerQuestion,
    AskedPermission,
    AskSnapshot,
    CallerAudio,
    CapUse,
    CustomInput,
    DescribeVerb,
    EarlierWords,
    HangUp,
    KeyPress,
    Mute,
    Ping,
    PlaybackReport,
    PlayerSound,
    ProtocolViolationError,
    Resume,
    StillRunningTool,
    Stop,
    StoppedTool,
    Talk,
    TextInput,
    ToolAtWork,
    UseVerb,
    VerbNow,
    decode_client,
    decode_server,
    encode,
)

FROM_CLIENT = [
    CallerAudio(bytes(640)),
    PlaybackReport(type="playback.position", utterance=3, played_ms=120.5, queued_ms=80),
    PlaybackReport(type="playback.flushed", utterance=0, played_ms=0, request=7),
    TextInput(text="hi"),
    KeyPress(button="#"),
    CustomInput(metadata={"a": [1, {"b": None}]}),
    Mute(on=True),
    Talk(down=True),
    PlayerSound(on=False),
    Stop(),
    HangUp(),
    Ping(t=1.5),
    UseVerb(verb="redirect", text="only EU", request="r"),
    AnswerPermission(id="q1", allow=False, remember=True),
    AnswerQuestion(id="question_1", text="Savings", request=1),
    DescribeVerb(verb="cancel", request=3),
    AskSnapshot(request=4),
    Resume(token="c1.s", received=3, utterance=2, audio_bytes=640, playing=1, played_ms=1.5),
]
FROM_SERVER = [
    AgentFrame(2**32 - 1, b"\1\2\3\4"),
    AgentFrame(1, b""),
    Hello(call="c", agent="a", audio=True),
    Clear(utterance=1, request=1, reason="barge-in"),
    UtteranceEnd(utterance=1),
    Transcript(role="agent", text="x", final=True),
    Spoken(utterance=1, text="x"),
    Cut(utterance=1, heard="a", rest="b", at_ms=3),
    State(state="idle", number=4),
    OtherEvent(name="agent.tool_call", data={"name": "t"}),
    ErrorMessage(code="bad_json", message="m", request="r"),
    Pong(t=1),
    Ended(reason="hangup"),
    Hold(on=True),
    VerbReceipt(
        id=1,
        verb="cancel",
        accepted=True,
        answer=2,
        phase="tool",
        stopped=(StoppedTool(id="t1", tool="look"),),
        still_running=(
            StillRunningTool(id="t2", tool="pay", policy="shield", deadline_ms=1.5),
            StillRunningTool(id="t3", tool="mail", policy="detach"),
        ),
        upgraded_from="pause",
        request=5,
    ),
    VerbReceipt(id=2, verb="pause", accepted=False, reason="nothing is running", phase="idle"),
    VerbSettled(id=1, request=5),
    Description(request=3, verb="cancel", text="Cancel: the work ends.", possible=True),
    SnapshotMessage(
        request=4,
        state="tool",
        number=7,
        elapsed_ms=1,
        answer=2,
        phase="tool",
        step=1,
        steps=3,
        label="look",
        text="Let me",
        active_ms=2,
        total_ms=3,
        caps={"steps": CapUse(used=1, limit=3)},
        tools=(ToolAtWork(id="t1", name="look", policy="cancel", elapsed_ms=1),),
        backgrounded=0,
        permissions=(AskedPermission(id="t2", name="pay", arguments={"eur": 3}),),
        verbs={"cancel": VerbNow(text="Cancel: the work ends.", possible=True)},
    ),
    Resumed(
        call="c1",
        agent="a",
        audio=True,
        resume="c1.s",
        resume_s=20,
        conversation="ada",
        transcript=(
            EarlierWords(role="user", text="hi"),
            EarlierWords(role="agent", text="ab", heard="a"),
        ),
        received=7,
        state="idle",
        number=9,
        snapshot=SnapshotMessage(
            request="resumed",
            state="idle",
            number=9,
            elapsed_ms=1,
            phase="idle",
            step=0,
            label="",
            text="",
            active_ms=0,
            total_ms=0,
            caps={},
            backgrounded=0,
            verbs={},
        ),
    ),
]


@pytest.mark.parametrize("message", FROM_CLIENT, ids=repr)
def test_a_client_message_survives_the_wire(message):
    """What a client encodes is what a server decodes."""
    assert decode_client(encode(message)) == message


@pytest.mark.parametrize("message", FROM_SERVER, ids=repr)
def test_a_server_message_survives_the_wire(message):
    """What a server encodes is what a client decodes."""
    assert decode_server(encode(message)) == message


def test_agent_audio_is_a_little_endian_number_and_samples():
    """The header is four bytes, least significant first."""
    assert encode(AgentFrame(258, b"ab")) == b"\x02\x01\x00\x00ab"


def test_absent_fields_are_not_sent():
    """None is left out rather than sent as null."""
    sent = json.loads(encode(Transcript(role="user", text="x", final=False)))
    assert sent == {"type": "transcript", "role": "user", "text": "x", "final": False}


def test_unknown_fields_are_ignored():
    """A newer client's extra field does not make its message bad."""
    assert decode_client('{"type":"mute","on":true,"since":3}') == Mute(on=True)


@pytest.mark.parametrize(
    ("data", "code", "says"),
    [
        ("", "bad_json", "not JSON"),
        ("{", "bad_json", "not JSON"),
        ('{"t": NaN}', "bad_json", "not JSON"),
        ("[" * 100_000, "too_large", "65536"),
        ("[" * 10_000, "bad_json", "not JSON"),
        ('"\\ud800"', "bad_json", "not JSON"),
        ("3", "bad_message", "object"),
        ("{}", "unknown_type", "None"),
        ('{"type":null}', "unknown_type", "None"),
        ('{"type":["text"]}', "unknown_type", "list"),
        ('{"type":"hello"}', "unknown_type", "'hello'"),
        ('{"type":"text"}', "bad_message", "text: Field required"),
        ('{"type":"text","text":"  "}', "bad_message", "text"),
        ('{"type":"text","text":"\u200b"}', "bad_message", "text: Value error, it says nothing"),
        ('{"type":"text","text":"..."}', "bad_message", "text: Value error, it says nothing"),
        ('{"type":"control","verb":"redirect","text":"\ufeff"}', "bad_message", "needs a text"),
        ('{"type":"text","text":3}', "bad_message", "text"),
        ('{"type":"mute","on":"yes"}', "bad_message", "on"),
        ('{"type":"control","verb":"stpo"}', "bad_message", "'shutdown', not 'stpo'"),
        ('{"type":"control","verb":["stop"]}', "bad_message", "or 'shutdown'"),
        ('{"type":"dtmf","button":"E"}', "bad_message", "or 'D', not 'E'"),
        ('{"type":"custom","metadata":[]}', "bad_message", "metadata"),
        ('{"type":"custom","metadata":{"a":[1e999]}}', "bad_message", "metadata"),
        ('{"type":"ping","t":1e999}', "bad_message", "t: Input should be a finite"),
        ('{"type":"playback.done","utterance":-1,"played_ms":0}', "bad_message", "utterance"),
        ('{"type":"playback.done","utterance":4294967296,"played_ms":0}', "bad_message", "utter"),
        ('{"type":"playback.done","utterance":1,"played_ms":-1}', "bad_message", "played_ms"),
        ('{"type":"playback.done","utterance":1.5,"played_ms":1}', "bad_message", "utterance"),
        (b"", "bad_audio", "not 0"),
        (bytes(30), "bad_audio", "not 30"),
        (bytes(641), "bad_audio", "not 641"),
        (bytes(3202), "bad_audio", "3200"),
        (bytes(65_537), "too_large", "65536"),
    ],
)
def test_what_is_wrong_gets_its_code(data, code, says):
    """Each kind of bad message is refused with its own code and says what was expected."""
    with pytest.raises(ProtocolViolationError) as caught:
        decode_client(data)
    assert caught.value.code == code
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("sent", "echoed"),
    [("7", 7), ('"r"', "r"), (f'"{"x" * 99}"', "x" * 64), ("true", None), ("1e3", None)],
)
def test_a_readable_request_is_echoed(sent, echoed):
    """The request of a refused message comes back with the error, bounded."""
    with pytest.raises(ProtocolViolationError) as caught:
        decode_client(f'{{"type":"nope","request":{sent}}}')
    assert caught.value.request == echoed


@pytest.mark.parametrize("said", ["my number is 555", "5554321", "x" * 41])
@pytest.mark.parametrize("start", ['"type":"dtmf","button":', '"type":"control","verb":'])
def test_what_was_said_is_not_in_the_error(start, said):
    """The text of an error repeats the name of a verb or a key, and nothing else that was sent."""
    with pytest.raises(ProtocolViolationError) as caught:
        decode_client(f'{{{start}"{said}"}}')
    assert said not in str(caught.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
fields = st.dictionaries(
    st.sampled_from(["utterance", "played_ms", "text", "on", "t", "button", "metadata", "request"]),
    json_values,
)
tags = st.sampled_from([m.type for m in (*FROM_CLIENT[1:], *FROM_SERVER[2:])])


def decode_either(data):
    """Decode as both sides; only a typed error may come."""
    for decode in (decode_client, decode_server):
        try:
            message = decode(data)
        except ProtocolViolationError as violation:
            encode(ErrorMessage(code=violation.code, message=violation.message))
        else:
            assert isinstance(encode(message), str | bytes)


@given(st.text() | st.binary())
def test_no_data_raises_anything_but_the_typed_error(data):
    """Any text and any bytes decode or raise ProtocolViolationError."""
    decode_either(data)


@given(tags, fields)
def test_no_json_raises_anything_but_the_typed_error(tag, values):
    """Any fields under any known type decode or raise ProtocolViolationError."""
    decode_either(json.dumps({"type": tag, **values}))


@given(st.integers(0, 2**32 - 1), st.binary(max_size=500))
def test_binary_frames_from_the_server(utterance, pcm):
    """A frame of whole samples decodes to itself; half a sample does not."""
    data = struct.pack("<I", utterance) + pcm
    if len(pcm) % 2:
        with pytest.raises(ProtocolViolationError, match="bad_audio"):
            decode_server(data)
    else:
        assert decode_server(data) == AgentFrame(utterance, pcm)


def test_a_report_knows_its_kind():
    """The kind of a report is its type without the prefix."""
    report = PlaybackReport(type="playback.underrun", utterance=1, played_ms=math.pi)
    assert report.kind == "underrun"
