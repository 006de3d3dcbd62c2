"""A fake of Exotel's Voicebot: calls whose sound it streams, on trio's clock.

It takes pieces of 3,200 bytes at least, in multiples of 320, and sends marks back as Twilio does.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from itertools import count
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from bargein.bridge.websocket import Data
from bargein.bridge.wires.telephone import LineFormat
from bargein.bridge.wires.telephone.exotel import LEAST_BYTES, USER

from ..twilio.fake_media import Delay
from ..twilio.fake_stream import FakeStreamCarrier, Read
from ..twilio.fake_stream_steps import StreamAnswer

__all__ = ["FakeExotel"]


class ExotelSpelling:
    """How Exotel spells a stream."""

    frame_ms = 100
    returns_marks_at_clear = True

    def __init__(self, rate_hz: int) -> None:
        self.sound = LineFormat("l16", rate_hz)
        self._sequence = count(1)

    def _message(self, event: str, **fields: Any) -> str:
        number = str(next(self._sequence))
        return json.dumps(
            {"event": event, "sequence_number": number, "stream_sid": "EX1", **fields}
        )

    def opening(
        self, call: str, caller: str, called: str, parameters: Mapping[str, str]
    ) -> list[Data]:
        """Return the first messages."""
        start = {
            "stream_sid": "EX1",
            "call_sid": call,
            "account_sid": "acme1",
            "from": caller,
            "to": called,
            "custom_parameters": dict(parameters),
            "media_format": {
                "encoding": "audio/x-raw",
                "sample_rate": str(self.sound.rate_hz),
                "bit_rate": "16",
            },
        }
        return [json.dumps({"event": "connected"}), self._message("start", start=start)]

    def media(self, coded: bytes, number: int) -> Data:
        """Return a message with the caller's sound."""
        payload = base64.b64encode(coded).decode()
        told = {"chunk": str(number), "timestamp": str(number * self.frame_ms)}
        return self._message("media", media={**told, "payload": payload})

    def key(self, button: str) -> Data:
        """Return what tells that the caller has pressed a key."""
        return self._message("dtmf", dtmf={"digit": button, "duration": "100"})

    def played(self, name: str) -> Data:
        """Return what sends a mark back."""
        return self._message("mark", mark={"name": name})

    def cleared(self) -> Data | None:
        """Return nothing: no message tells that all was dropped."""
        return None

    def read(self, data: Data) -> Read:
        """Return what a message of the agent means."""
        message = json.loads(data)
        assert message["stream_sid"] == "EX1", message
        match message["event"]:
            case "media":
                coded = base64.b64decode(message["media"]["payload"], validate=True)
                assert LEAST_BYTES <= len(coded) <= 100_000, len(coded)
                assert len(coded) % 320 == 0, len(coded)
                return Read("sound", coded)
            case "mark":
                return Read("mark", text=message["mark"]["name"])
            case "clear":
                return Read("clear")
        raise AssertionError(f"Exotel knows no such message: {message}")


class FakeExotel(FakeStreamCarrier):
    """An Exotel account in memory.

    Attributes:
        secret: The password in the address of the webhook, for ``Exotel(secret=)``.
        rate_hz: The sample rate of its streams.
    """

    voice_url = "https://voice.example.com/exotel/voice"

    def __init__(
        self,
        *,
        secret: str = "a secret",
        rate_hz: int = 8_000,
        returns_marks: bool = True,
        delay: Delay = lambda: 0.0,
    ) -> None:
        """Make an account without calls.

        Args:
            secret: The password in the address of the webhook.
            rate_hz: The sample rate of its streams.
            returns_marks: Whether it sends marks back.
            delay: Returns how many seconds each message is on its way, either way.
        """
        super().__init__(returns_marks=returns_marks, delay=delay)
        self.secret = secret
        self.rate_hz = rate_hz

    def spelling(self) -> ExotelSpelling:
        """Return how one stream is spelled."""
        return ExotelSpelling(self.rate_hz)

    def fields(self, call: str, caller: str, called: str) -> dict[str, str]:
        """Return what the webhook is told of a call."""
        return {"CallSid": call, "CallFrom": caller, "CallTo": called, "Direction": "incoming"}

    def request(self, url: str, fields: Mapping[str, str]) -> tuple[str, dict[str, str], bytes]:
        """Return the method, the headers and the body of a request to a webhook."""
        basic = base64.b64encode(f"{USER}:{self.secret}".encode()).decode()
        head = {"Authorization": f"Basic {basic}"}
        head["Content-Type"] = "application/x-www-form-urlencoded"
        return "POST", head, urlencode(fields).encode()

    def read_answer(self, body: bytes) -> StreamAnswer | None:
        """Return what the answer to a webhook tells; ``None`` if that is no stream."""
        url = json.loads(body).get("url")
        if url is None:
            return None
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert len(query) <= 4, query
        assert int(query.pop("sample-rate")) == self.rate_hz
        after = url.replace("wss://", "https://").partition("/exotel/")[0] + "/exotel/ended"
        return StreamAnswer(url, query, after)
