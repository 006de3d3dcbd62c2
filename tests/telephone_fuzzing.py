"""Messages that no carrier and no platform should send, to every codec, webhook and reader.

``python -m tests.telephone_fuzzing`` gives each codec real messages with something wrong, JSON of
any shape, and bytes.  Each has to be an event; an input that raises is written to the corpus, which
``make test`` plays again from then on.

A run is as its seed, which is printed first.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode

import structlog
import trio
from websockets.datastructures import Headers

from bargein.bridge.websocket import HttpRequest
from bargein.bridge.wires import RequestRefusedError
from bargein.bridge.wires.harness import _completions_codec, _line_codec, _retell_codec
from bargein.bridge.wires.telephone import (
    exotel,
    plivo,
    telnyx,
    telnyx_media,
    twilio,
    twilio_media,
    vonage,
)
from bargein.bridge.wires.telephone._media_codec import JsonMediaCodec
from bargein.bridge.wires.telephone._relay_codec import RelayCodec
from bargein.nodes.vendors.exotel.fake import FakeExotel
from bargein.nodes.vendors.plivo.fake import FakePlivo
from bargein.nodes.vendors.telnyx.fake_media import FakeTelnyxMedia
from bargein.nodes.vendors.twilio._played_carriers import CARRIERS
from bargein.nodes.vendors.vonage.fake import FakeVonage
from bargein.testing import SpelledSpeech

CORPUS = Path(__file__).parent / "bridge" / "wires" / "telephone" / "codec_corpus.jsonl"
"""Inputs that have raised once: a codec, and a text, or bytes in base64, a line."""


class Codec(Protocol):
    """What reads the messages of a carrier."""

    def decode(self, data: str | bytes, /) -> object:
        """Return what a message means."""
        ...


RELAY: tuple[dict[str, Any], ...] = (
    {"type": "setup", "callSid": "CA1", "callControlId": "v3:1", "customParameters": {"a": "b"}},
    {"type": "prompt", "voicePrompt": "hello", "lang": "en-US", "last": True},
    {"type": "dtmf", "digit": "5"},
    {"type": "interrupt", "utteranceUntilInterrupt": "Hi", "durationUntilInterruptMs": 460},
    {"type": "info", "name": "agentSpeaking", "value": "on", "ts": 1},
    {"type": "info", "name": "tokensPlayed", "value": "Hi,"},
    {"type": "error", "description": "Invalid message"},
)

TWILIO: tuple[dict[str, Any], ...] = (
    {"event": "connected", "protocol": "Call", "version": "1.0.0"},
    {
        "event": "start",
        "streamSid": "MZ1",
        "start": {
            "streamSid": "MZ1",
            "callSid": "CA1",
            "accountSid": "AC1",
            "customParameters": {"token": "t"},
            "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
        },
    },
    {
        "event": "media",
        "streamSid": "MZ1",
        "media": {"track": "inbound", "chunk": "1", "timestamp": "20", "payload": "/////w=="},
    },
    {"event": "dtmf", "streamSid": "MZ1", "dtmf": {"track": "inbound_track", "digit": "5"}},
    {"event": "mark", "streamSid": "MZ1", "mark": {"name": "u3:1200"}},
)


def _of(fake: Any) -> tuple[str | bytes, ...]:
    """Return one message of each kind that a carrier sends."""
    spelling = fake.spelling()
    messages = spelling.opening("call-1", "+1555", "+1556", {"token": "t"})
    messages += [spelling.media(bytes(spelling.frame_ms * spelling.sound.bytes_per_ms), 1)]
    messages += [spelling.key("5"), spelling.played("u3:1200"), spelling.cleared()]
    return tuple(message for message in messages if message is not None)


def _texts(messages: Sequence[dict[str, Any]]) -> tuple[str | bytes, ...]:
    return tuple(json.dumps(message) for message in messages)


SAID = [{"role": "agent", "content": "Hi"}, {"role": "user", "content": "Hello"}]
LINE: tuple[dict[str, Any], ...] = (
    {"type": "start", "call_id": "c1", "from": "+1", "agent": {"id": "a"}, "metadata": {"a": 1}},
    {"type": "message", "content": "hello", "event_id": "e1"},
    {"type": "user_state", "value": "speaking"},
    {"type": "agent_state", "value": "idle"},
    {"type": "agent_speech", "content": "Hi,"},
    {"type": "dtmf", "button": "5"},
    {"type": "custom", "metadata": {"a": [1, {"b": None}]}},
    {"type": "validation_error", "error_message": "no", "error_type": "x"},
)
RETELL: tuple[dict[str, Any], ...] = (
    {"interaction_type": "call_details", "call": {"call_id": "c1"}},
    {"interaction_type": "ping_pong", "timestamp": 1},
    {"interaction_type": "update_only", "transcript": SAID, "turntaking": "user_turn"},
    {"interaction_type": "response_required", "response_id": 1, "transcript": SAID},
    {"interaction_type": "reminder_required", "response_id": 2, "transcript": []},
)
COMPLETIONS: tuple[dict[str, Any], ...] = (
    {"model": "m", "messages": SAID, "stream": True, "user": "c1"},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]},
    {
        "messages": [{"role": "system", "content": "Be brief."}, *SAID],
        "stream_options": {"include_usage": True},
        "call": {"id": "c1", "customer": {"number": "+1"}},
    },
)


class _Reader:
    """Reads messages by a function."""

    def __init__(self, decode: Callable[[str | bytes], object]) -> None:
        self.decode = decode


def _completion(data: str | bytes) -> object:
    body = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    asked = _completions_codec.read_request(body)
    return asked if isinstance(asked, str) else asked.earlier(0.0)


class _Webhooks:
    """The webhooks of a carrier: what is not signed, and what would be read if it were."""

    def __init__(self, name: str) -> None:
        played = CARRIERS[name]
        fake = played.fake()
        speech = SpelledSpeech() if played.carries == "sound" else None
        [self._wire] = played.account(fake, speech, fake.transport()).wires(None)
        self._is_json = name == "vonage"
        self._count = 0

    def decode(self, data: str | bytes) -> object:
        """Return what each webhook makes of a body."""
        body = self._body(data)
        path = self._wire.webhooks[self._count % len(self._wire.webhooks)]
        self._count += 1
        kind = "application/json" if self._is_json else "application/x-www-form-urlencoded"
        signed = body[:40].hex()
        headers = Headers({"Host": "voice.example.com", "Content-Type": kind})
        for header in ("X-Twilio-Signature", "telnyx-signature-ed25519", "telnyx-timestamp",
                       "X-Plivo-Signature-V3", "X-Plivo-Signature-V3-Nonce"):  # fmt: skip
            headers[header] = signed
        headers["Authorization"] = (
            f"Bearer {signed}.{signed}.{signed}" if self._is_json else f"Basic {signed}"
        )
        request = HttpRequest("POST", path, headers, body)
        told: list[object] = []
        try:
            told.append(self._wire.identify(request))
        except RequestRefusedError as refused:
            told.append(refused)
        try:  # as if it were signed
            told.append(self._wire.answer(request))
        except RequestRefusedError as refused:
            told.append(refused)
        return told

    def _body(self, data: str | bytes) -> bytes:
        if isinstance(data, bytes):
            return data
        if not self._is_json:
            try:
                fields = json.loads(data)
            except (ValueError, RecursionError):
                fields = None
            if isinstance(fields, dict):
                told = {name: one if isinstance(one, str) else str(one)[:2_000]
                        for name, one in fields.items()}  # fmt: skip
                return urlencode(told, errors="surrogatepass").encode()
        return data.encode("utf-8", "surrogatepass")


CALLED: dict[str, tuple[dict[str, Any], ...]] = {
    "twilio": (
        {"CallSid": "CA1", "AccountSid": "AC1", "From": "+1", "To": "+2", "CallStatus": "ringing"},
        {"CallSid": "CA1", "From": "+1", "DialCallStatus": "busy", "HandoffData": "{}"},
    ),
    "telnyx": (
        {"CallSid": "v3:1", "AccountSid": "1", "From": "+1", "To": "+2"},
        {"CallSid": "v3:1", "From": "+1", "DialCallStatus": "no-answer"},
    ),
    "plivo": (
        {"CallUUID": "1", "From": "1", "To": "2", "CallStatus": "ringing"},
        {"CallUUID": "1", "DialStatus": "busy", "DialHangupCause": "USER_BUSY"},
    ),
    "vonage": (
        {"uuid": "1", "from": "1", "to": "2", "conversation_uuid": "c"},
        {"uuid": "1", "status": "busy", "timestamp": "2026-11-27T00:00:00Z"},
    ),
    "exotel": ({"CallSid": "1", "CallFrom": "1", "CallTo": "2", "Direction": "incoming"},),
}
"""What each carrier tells its webhooks."""

CODECS: dict[str, tuple[Callable[[], Codec], tuple[str | bytes, ...]]] = {
    "twilio": (lambda: RelayCodec(twilio.DIALECT), _texts(RELAY)),
    "telnyx": (lambda: RelayCodec(telnyx.DIALECT), _texts(RELAY)),
    "twilio-media": (
        lambda: JsonMediaCodec(twilio_media.DIALECT, twilio_media.NAMES),
        _texts(TWILIO),
    ),
    "telnyx-media": (
        lambda: JsonMediaCodec(telnyx_media.DIALECT, telnyx_media.NAMES),
        _of(FakeTelnyxMedia()),
    ),
    "plivo": (lambda: JsonMediaCodec(plivo.DIALECT, plivo.NAMES), _of(FakePlivo())),
    "exotel": (lambda: JsonMediaCodec(exotel.DIALECT, exotel.NAMES), _of(FakeExotel())),
    "vonage": (vonage.VonageCodec, _of(FakeVonage())),
    "line": (lambda: _Reader(_line_codec.decode), _texts(LINE)),
    "retell": (lambda: _Reader(_retell_codec.decode), _texts(RETELL)),
    "completions": (lambda: _Reader(_completion), _texts(COMPLETIONS)),
    **{
        f"{name} webhooks": (partial(_Webhooks, name), _texts(messages))
        for name, messages in CALLED.items()
    },
}
"""Each codec, and one message of each kind that it reads, the first of a call first."""

ODD: tuple[Any, ...] = (
    None, True, 0, -1, 3, -1.5, 1e308, 10**40, -(2**63), "", "x" * 9_000, "\x00\u202e", "é",
    "=" * 9, "////", "1" * 400, "-1", "1e9", [], {}, [[]], [{}], {"a": {"b": []}}, {"": None},
)  # fmt: skip


def inputs(randomness: random.Random, messages: Sequence[str | bytes]) -> Iterator[str | bytes]:
    """Yield inputs without end: real messages, mutated ones, JSON of any shape, and bytes."""
    while True:
        choice = randomness.random()
        message = randomness.choice(messages)
        if choice < 0.1:
            yield message
        elif choice < 0.2:
            yield randomness.randbytes(randomness.choice((0, 1, 2, 639, 640, 641, 5_000)))
        elif choice < 0.3:
            yield json.dumps(_json(randomness, 4))
        elif isinstance(message, str):
            yield _mutated(randomness, message)
        else:
            yield message[: randomness.randrange(len(message) + 1)]


def _json(randomness: random.Random, depth: int) -> Any:
    kind = randomness.random()
    if depth and kind < 0.3:
        return {
            randomness.choice(("event", "type", "media", "start", "mark", "", "é")): _json(
                randomness, depth - 1
            )
            for _ in range(randomness.randrange(4))
        }
    if depth and kind < 0.5:
        return [_json(randomness, depth - 1) for _ in range(randomness.randrange(4))]
    return deepcopy(randomness.choice(ODD))


def _mutated(randomness: random.Random, text: str) -> str | bytes:
    message = json.loads(text)
    for _ in range(randomness.randrange(4)):
        place = randomness.choice([*_objects(message)])
        name = randomness.choice([*place, "extra"])
        if randomness.random() < 0.3:
            place.pop(name, None)
        else:
            place[name] = _json(randomness, 2)
    text = json.dumps(message)
    if randomness.random() < 0.4:
        at = randomness.randrange(len(text))
        odd = chr(randomness.choice((0, 34, 44, 92, 123, 125, 0xD800, 0x10FFFF)))
        text = text[:at] + odd * randomness.randrange(3) + text[at + randomness.randrange(3) :]
    if randomness.random() < 0.05:
        text = "[" * randomness.randrange(5_000) + text
    if randomness.random() < 0.2:
        return text.encode("utf-8", "surrogatepass")[: randomness.randrange(len(text) + 1)]
    return text


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _objects(each)


def attack(name: str, count: int, seed: int) -> list[tuple[str | bytes, BaseException]]:
    """Return the inputs that a codec raised for, each with the error.

    Args:
        name: The codec.
        count: How many inputs.
        seed: Decides what they are.
    """
    return trio.run(_attack, name, count, seed)  # webhooks look at its clock


async def _attack(name: str, count: int, seed: int) -> list[tuple[str | bytes, BaseException]]:
    make, messages = CODECS[name]
    raised: list[tuple[str | bytes, BaseException]] = []
    codec = make()
    for n, data in enumerate(inputs(random.Random(f"{name} {seed}"), messages)):
        if n == count:
            return raised
        if n % 20 == 0:  # a new stream, opened or not
            codec = make()
            for first in messages[: n % 3]:
                codec.decode(first)
        try:
            event = codec.decode(data)
            assert event is not None, "no event"
        except BaseException as error:  # noqa: BLE001 - what a codec raises is a finding
            raised.append((data, error))
    raise AssertionError("inputs() has no end")


def written(name: str, data: str | bytes) -> str:
    """Return a line of the corpus."""
    if isinstance(data, bytes):
        return json.dumps({"codec": name, "base64": base64.b64encode(data).decode()})
    return json.dumps({"codec": name, "text": data})


def corpus() -> Iterator[tuple[str, str | bytes]]:
    """Yield the inputs that have raised once, each with its codec."""
    for line in CORPUS.read_text("utf-8").splitlines():
        told = json.loads(line)
        data = base64.b64decode(told["base64"]) if "base64" in told else told["text"]
        yield told["codec"], data


def main(argv: Sequence[str] | None = None) -> int:
    """Attack each codec, and return 1 if any raised."""
    parser = argparse.ArgumentParser(prog="python -m tests.telephone_fuzzing", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="what is sent")
    parser.add_argument("--inputs", type=int, default=1_000, help="of each codec (%(default)s)")
    options = parser.parse_args(argv)
    print(f"seed {options.seed}: {options.inputs} inputs of each codec")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    found = 0
    for name in CODECS:
        raised = attack(name, options.inputs, options.seed)
        found += len(raised)
        print(f"{name}: {len(raised)} raised")
        with CORPUS.open("a", encoding="utf-8") as kept:
            for data, error in raised[:20]:
                print(f"  {type(error).__name__}: {error}"[:200], file=sys.stderr)
                kept.write(written(name, data) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
