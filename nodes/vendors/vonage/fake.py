"""A fake of Vonage: its applications by REST, and calls whose sound it streams, on trio's clock.

Sound comes and goes as binary frames of exactly 20 ms; what it is told to notify it forgets when it
clears, which it acknowledges.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bargein.bridge.websocket import Data
from bargein.bridge.wires.telephone import LineFormat

from ..twilio.fake_media import Delay
from ..twilio.fake_stream import FakeStreamCarrier, Read
from ..twilio.fake_stream_legs import Answer, DialAnswer, StreamAnswer

if TYPE_CHECKING:
    import httpx2

__all__ = ["FakeVonage"]

MOST_FRAMES = 3_072
"""How many frames it keeps; what comes then is lost."""


class VonageSpelling:
    """How Vonage spells a stream."""

    sound = LineFormat("l16", 16_000)
    frame_ms = 20
    returns_marks_at_clear = False

    def opening(
        self, call: str, caller: str, called: str, parameters: Mapping[str, str]
    ) -> list[Data]:
        """Return the first message."""
        first = {"event": "websocket:connected", "content-type": "audio/l16;rate=16000"}
        return [json.dumps({**first, **parameters})]

    def media(self, coded: bytes, number: int) -> Data:
        """Return a frame of the caller's sound."""
        return coded

    def key(self, button: str) -> Data:
        """Return what tells that the caller has pressed a key."""
        return json.dumps({"event": "websocket:dtmf", "digit": button, "duration": 260})

    def played(self, name: str) -> Data:
        """Return a notification."""
        return json.dumps({"event": "websocket:notify", "payload": {"name": name}})

    def cleared(self) -> Data | None:
        """Return what tells that all was dropped."""
        return json.dumps({"event": "websocket:cleared"})

    def read(self, data: Data) -> Read:
        """Return what a message of the agent means."""
        if isinstance(data, bytes):
            assert len(data) == 640, len(data)
            return Read("sound", data)
        message = json.loads(data)
        match message["action"]:
            case "notify":
                return Read("mark", text=message["payload"]["name"])
            case "clear":
                return Read("clear")
        raise AssertionError(f"Vonage knows no such message: {message}")


class FakeVonage(FakeStreamCarrier):
    """A Vonage account in memory.

    Attributes:
        api_key: The account, for ``Vonage(api_key=)``.
        api_secret: Its secret.
        signature_secret: The secret with which it signs.
        applications: Its applications, by their ids.
        numbers: The application that each of its numbers is linked to.
    """

    voice_url = "https://voice.example.com/vonage/voice"

    def __init__(
        self,
        *,
        api_key: str = "abcd1234",
        api_secret: str = "secret",
        signature_secret: str = "a secret of signatures, long enough",
        numbers: Mapping[str, str] | None = None,
        applications: Mapping[str, dict[str, Any]] | None = None,
        returns_marks: bool = True,
        delay: Delay = lambda: 0.0,
    ) -> None:
        """Make an account without calls.

        Args:
            api_key: The account.
            api_secret: Its secret.
            signature_secret: The secret with which it signs.
            numbers: Its numbers, without a plus, each with the application that it is linked to.
            applications: Its applications by their ids, as its API returns them.
            returns_marks: Whether it notifies.
            delay: Returns how many seconds each message is on its way, either way.
        """
        super().__init__(returns_marks=returns_marks, delay=delay)
        self.api_key = api_key
        self.api_secret = api_secret
        self.signature_secret = signature_secret
        self.numbers = dict(numbers or {})
        self.applications = dict(applications or {})

    def token(self, body: bytes, **changed: Any) -> str:
        """Return the token of a request.

        Args:
            body: The body of the request.
            changed: Claims in place of the usual ones.
        """
        claims = {
            "iat": int(time.time()),
            "jti": f"jti-{next(self._ids)}",
            "iss": "Vonage",
            "payload_hash": hashlib.sha256(body).hexdigest(),
            "api_key": self.api_key,
            **changed,
        }
        parts = [_part({"alg": "HS256", "typ": "JWT"}), _part(claims)]
        signed = ".".join(parts).encode()
        digest = hmac.new(self.signature_secret.encode(), signed, hashlib.sha256).digest()
        return f"{signed.decode()}.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"

    def spelling(self) -> VonageSpelling:
        """Return how one stream is spelled."""
        return VonageSpelling()

    def fields(self, call: str, caller: str, called: str) -> dict[str, str]:
        """Return what the webhook is told of a call."""
        return {"uuid": call, "from": caller, "to": called, "conversation_uuid": "CON-1"}

    def request(self, url: str, fields: Mapping[str, str]) -> tuple[str, dict[str, str], bytes]:
        """Return the method, the headers and the body of a signed request to a webhook."""
        body = json.dumps(dict(fields), separators=(",", ":")).encode()
        head = {"Authorization": f"Bearer {self.token(body)}", "Content-Type": "application/json"}
        return "POST", head, body

    def read_answer(self, body: bytes) -> Answer | None:
        """Return what the answer to a webhook tells; ``None`` for the end of the call."""
        actions = json.loads(body)
        if not actions:
            return None
        (to,) = actions[0]["endpoint"]
        if to["type"] != "websocket":
            return DialAnswer(to.get("uri") or f"+{to['number']}")
        _, then = actions
        assert (to["type"], to["content-type"]) == ("websocket", "audio/l16;rate=16000")
        return StreamAnswer(to["uri"], to["headers"], then["eventUrl"][0])

    def transport(self) -> httpx2.MockTransport:
        """Return the account's API, for ``Vonage(transport=)``."""
        import httpx2

        def answer(request: httpx2.Request) -> httpx2.Response:
            status, fields = self._rest(request)
            return httpx2.Response(status, json=fields)

        return httpx2.MockTransport(answer)

    def _rest(self, request: httpx2.Request) -> tuple[int, dict[str, Any]]:
        basic = base64.b64encode(f"{self.api_key}:{self.api_secret}".encode()).decode()
        if request.headers.get("Authorization") != f"Basic {basic}":
            return 401, {"title": "Unauthorized"}
        if request.url.path == "/account/numbers":
            wanted = request.url.params["pattern"]
            listed = [
                {"msisdn": one, "country": "US", "app_id": application}
                for one, application in self.numbers.items()
                if wanted in one
            ]
            return 200, {"count": len(listed), "numbers": listed}
        at = request.url.path.removeprefix("/v2/applications/")
        if at not in self.applications:
            return 404, {"title": "Not found"}
        if request.method == "PUT":
            self.applications[at] = {"id": at, **json.loads(request.content)}
        return 200, self.applications[at]


def _part(fields: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")
