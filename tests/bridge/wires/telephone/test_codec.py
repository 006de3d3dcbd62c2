"""What a carrier's message means, whatever it is; and what a carrier's signature is."""

import json
import random

import pytest

from bargein.bridge.wires.telephone._relay_codec import RelayCodec, RelayDialect
from bargein.bridge.wires.telephone.signatures import signature_of

TOKEN = "12345"
FORM = {"CallSid": "CA1", "From": "+15550001", "To": "+15550002"}

KNOWN = [
    {"type": "setup", "callSid": "CA1", "sessionId": "VX1", "customParameters": {"token": "t"}},
    {"type": "prompt", "voicePrompt": "hello", "lang": "en-US", "last": True},
    {"type": "dtmf", "digit": "5"},
    {"type": "interrupt", "utteranceUntilInterrupt": "Hi", "durationUntilInterruptMs": 460},
    {"type": "info", "name": "agentSpeaking", "value": "on", "ts": 1},
    {"type": "info", "name": "tokensPlayed", "value": "Hi,"},
    {"type": "error", "description": "Invalid message"},
]


def mutated(randomness):
    """Return a message with something wrong, or bytes that are none."""
    message = dict(randomness.choice(KNOWN))
    odd = [None, 3, -1.5, "", "x" * 9000, [], {}, [[]], True, {"a": {"b": []}}, "\x00\u202e"]
    for _ in range(randomness.randrange(3)):
        message[randomness.choice([*message, "type", "extra"])] = randomness.choice(odd)
    text = json.dumps(message)
    if randomness.random() < 0.5:
        at = randomness.randrange(len(text))
        text = text[:at] + chr(randomness.randrange(1, 0x2FF)) * randomness.randrange(3) + text[at:]
    whole = randomness.random() < 0.7
    return text if whole else text.encode()[: randomness.randrange(len(text) + 1)]


@pytest.mark.parametrize("count", [200, pytest.param(1_000, marks=pytest.mark.proof)])
@pytest.mark.parametrize(
    "dialect", [RelayDialect("Twilio"), RelayDialect("Telnyx", ("callControlId", "callSid"))]
)
def test_no_message_raises(count, dialect):
    """Each input is one event, whatever it is."""
    codec, randomness = RelayCodec(dialect), random.Random(33)
    kinds = {type(codec.decode(mutated(randomness))).__name__ for _ in range(count)}
    assert {"Ignored", "Prompt", "PressedKey", "Stopped", "PlayedWords", "SpeechChange"} <= kinds


def test_a_carrier_without_preemption_cannot_be_silenced():
    """What a carrier cannot do is data: then there is no message for it."""
    codec = RelayCodec(RelayDialect("Telnyx", ("callControlId",), can_preempt=False))
    assert codec.clear() is None
    assert "preemptible" not in codec.text("Hi", last=True, interruptible=True)
    opened = codec.decode(json.dumps({"type": "setup", "callControlId": "v3:1", "from": "+1"}))
    assert (opened.call, opened.caller) == ("v3:1", "+1")


def test_the_signature_is_twilios():
    """Requests that Twilio's own validator accepts are accepted, with a port and without."""
    voice = "https://agent.example.com/twilio/voice"
    assert signature_of(TOKEN, voice, {k: [v] for k, v in FORM.items()}) == (
        "q6g9okRVjU5BmdksLRepMVXFzDY="
    )
    assert signature_of(TOKEN, voice, {k: [v] for k, v in FORM.items()}, "sha256") == (
        "oHYQ39j332X2En7SmPgWUCWZgbapcfBP7niBaXwyiwM="
    )
    assert signature_of(TOKEN, "wss://agent.example.com/twilio/media", {}) == (
        "jnHHJVRuc+5O5HxzOjyUz1Q19Bc="
    )
    form = {"CallSid": "CA1234567890ABCDE", "Digits": "1234", "To": "+18005551212"}
    form |= {"From": "+12349013030", "Caller": "+12349013030"}
    told = signature_of(
        TOKEN, "https://mycompany.com/myapp.php?foo=1&bar=2", {k: [v] for k, v in form.items()}
    )
    assert told == "0/KCTR6DLpKmkAf8muzZqo1nDgQ="
