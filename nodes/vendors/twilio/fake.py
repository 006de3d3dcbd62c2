"""A fake of Twilio: its numbers by REST, and calls that it relays as text on trio's clock.

It speaks as recorded calls show: a clause at a time, told when it was spoken; an interruption drops
all that it has, and tells the words of the clause that were heard; a text that may be preempted
stops for the next one.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qs, urlencode, urlsplit
from xml.etree import ElementTree

import trio

from bargein.bridge.websocket import ConnectionClosedError, WebSocket, open_websocket
from bargein.bridge.wires.telephone.signatures import FORM, signature_of
from bargein.routes import BargeinError
from bargein.routes.service_nursery import open_service_nursery

if TYPE_CHECKING:
    import httpx2

__all__ = ["CarrierRefusedError", "FakeTwilio", "FakeTwilioCall"]

START_S = 0.32
"""How long the voice takes to begin, in seconds; measured on recorded calls."""

TURN_S = 0.7
"""How long after the caller's last word its transcript comes, in seconds."""

_CLAUSE = re.compile(r"[,.;:!?]+\s+")

Dial = Callable[[], Awaitable[trio.abc.Stream]]
"""Opens a stream to the server."""


class CarrierRefusedError(BargeinError):
    """The server did not take the call.

    Attributes:
        status: The status of its answer to the webhook.
        body: The answer.
    """

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"the webhook answered {status}: {body.decode(errors='replace')[:300]}")
        self.status = status
        self.body = body


class FakeTwilio:
    """A Twilio account in memory.

    Attributes:
        account_sid: The account, for ``Twilio(account_sid=)``.
        auth_token: Its token, with which it signs.
        voice_urls: What answers each of its numbers.
        chars_per_s: How fast its voice and its callers speak, in characters a second.
        tells: Whether it tells what it has spoken.
    """

    def __init__(
        self,
        *,
        account_sid: str = "AC00000000000000000000000000000000",
        auth_token: str = "12345",
        numbers: Mapping[str, str] | None = None,
        chars_per_s: float = 15.0,
        tells: bool = True,
    ) -> None:
        """Make an account without calls.

        Args:
            account_sid: The account.
            auth_token: Its token.
            numbers: Its numbers, each with the voice URL that it has.
            chars_per_s: How fast its voice and its callers speak, in characters a second.
            tells: Whether it tells what it has spoken, as ``tokens-played``.
        """
        self.account_sid = account_sid
        self.auth_token = auth_token
        self.voice_urls = dict(numbers or {})
        self.chars_per_s = chars_per_s
        self.tells = tells
        self._count = count(1)

    def sign(
        self,
        url: str,
        form: Mapping[str, str] | None = None,
        *,
        algorithm: Literal["sha1", "sha256"] = "sha1",
    ) -> dict[str, str]:
        """Return the header of a signature.

        Args:
            url: The address as it is called.
            form: The parameters of the body.
            algorithm: The hash.
        """
        values = {name: [value] for name, value in (form or {}).items()}
        return {"X-Twilio-Signature": signature_of(self.auth_token, url, values, algorithm)}

    def transport(self) -> httpx2.MockTransport:
        """Return the account's API, for ``Twilio(transport=)``."""
        import httpx2

        def answer(request: httpx2.Request) -> httpx2.Response:
            status, fields = self._rest(request)
            return httpx2.Response(status, json=fields)

        return httpx2.MockTransport(answer)

    def _rest(self, request: httpx2.Request) -> tuple[int, dict[str, Any]]:
        prefix = f"/2010-04-01/Accounts/{self.account_sid}/IncomingPhoneNumbers"
        if not request.url.path.startswith(prefix):
            return 401, {"code": 20003, "message": "Authenticate"}
        numbers = list(self.voice_urls)
        if request.method == "GET":
            wanted = parse_qs(urlsplit(str(request.url)).query).get("PhoneNumber", [""])[0]
            found = [number for number in numbers if wanted in number]
            return 200, {"incoming_phone_numbers": [self._record(one) for one in found]}
        at = request.url.path.removeprefix(f"{prefix}/PN").removesuffix(".json")
        if not at.isdigit() or int(at) >= len(numbers):
            return 404, {"code": 20404, "message": "not found"}
        number = numbers[int(at)]
        form = parse_qs(request.content.decode(), keep_blank_values=True)
        self.voice_urls[number] = form.get("VoiceUrl", [""])[0]
        return 200, self._record(number)

    def _record(self, number: str) -> dict[str, Any]:
        at = list(self.voice_urls).index(number)
        return {"sid": f"PN{at}", "phone_number": number, "voice_url": self.voice_urls[number]}

    @asynccontextmanager
    async def call(
        self,
        dial: Dial,
        *,
        voice_url: str = "https://voice.example.com/twilio/voice",
        caller: str = "+15550001",
        called: str = "+15550100",
        hears: Callable[[str], None] = lambda text: None,
    ) -> AsyncIterator[FakeTwilioCall]:
        """Call a number, until the end of the block or of the call.

        Args:
            dial: Opens a stream to the server; called for the webhook, the socket, and what comes
                after it.
            voice_url: What answers the number.
            caller: Who calls.
            called: The number.
            hears: Called with what the caller has heard, a clause at a time.

        Raises:
            CarrierRefusedError: The webhook does not answer with a relay.
            HandshakeRefusedError: The socket is refused.
        """
        form = {
            "CallSid": f"CA{next(self._count):032}",
            "AccountSid": self.account_sid,
            "From": caller,
            "To": called,
            "CallStatus": "ringing",
            "Direction": "inbound",
        }
        status, body = await self.post(dial, voice_url, form)
        answer = ElementTree.fromstring(body) if status == 200 else None
        relay = None if answer is None else answer.find("Connect/ConversationRelay")
        if answer is None or relay is None:
            raise CarrierRefusedError(status, body)
        url = relay.get("url", "")
        parameters = {
            each.get("name", ""): each.get("value", "") for each in relay.iter("Parameter")
        }
        connect = answer.find("Connect")
        after = "" if connect is None else connect.get("action", "")
        parts = urlsplit(url)
        plain = f"ws://{parts.netloc}{parts.path}"
        async with open_websocket(
            plain, headers=self.sign(url), stream=await dial(), ping_s=None
        ) as socket:
            call = FakeTwilioCall(self, socket, form, dict(relay.attrib), hears)
            async with open_service_nursery("the call is over") as nursery:
                nursery.start_soon(call.run)
                await call.setup(parameters)
                try:
                    yield call
                finally:
                    nursery.cancel_scope.cancel(reason="the caller hangs up")
        if after and call.handoff is not None:
            form |= {"SessionStatus": "ended", "HandoffData": call.handoff}
            call.end_with((await self.post(dial, after, form))[1].decode())

    async def post(self, dial: Dial, url: str, form: Mapping[str, str]) -> tuple[int, bytes]:
        """Ask a webhook, signed, and return the status and the body of its answer.

        Args:
            dial: Opens a stream to the server.
            url: Its address.
            form: What is posted.
        """
        parts = urlsplit(url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        signed = self.sign(url, form)
        body = urlencode(form).encode()
        return await _post_form(await dial(), parts.netloc, path, signed, body)


@dataclass(slots=True, eq=False)
class _Cycle:
    """Texts of the agent up to one that is the last."""

    interruptible: bool
    preemptible: bool
    text: str = ""
    is_closed: bool = False
    at: int = 0
    """How much of it was spoken."""

    def clause(self) -> str:
        """Return what can be spoken next; empty if nothing can."""
        rest = self.text[self.at :]
        found = _CLAUSE.search(rest)
        if found is not None:
            return rest[: found.end()]
        return rest if self.is_closed else ""


class FakeTwilioCall:
    """A call, from the caller's side.

    Attributes:
        attributes: Those of ``<ConversationRelay>``.
        heard: What the caller has heard, to the word.
        received: The messages of the agent, decoded.
        digits: The keys that the agent has pressed.
        handoff: What the agent handed on when it ended the relay; ``None`` before.
        then: The answer of the webhook that was asked what comes next.
        close_code: The code with which the socket was closed; ``None`` while it is open.
    """

    def __init__(
        self,
        twilio: FakeTwilio,
        socket: WebSocket,
        form: Mapping[str, str],
        attributes: dict[str, str],
        hears: Callable[[str], None],
    ) -> None:
        self.attributes = attributes
        self._hears = hears
        self.heard = ""
        self.received: list[dict[str, Any]] = []
        self.digits = ""
        self.handoff: str | None = None
        self.then = ""
        self.close_code: int | None = None
        self._twilio = twilio
        self._socket = socket
        self._form = form
        self._cycles: list[_Cycle] = []
        self._clause = ""
        self._clause_at_s = 0.0
        self._sounding: trio.CancelScope | None = None
        self._is_speaking = False
        self._changes = trio.lowlevel.ParkingLot()
        self._over = trio.Event()

    async def setup(self, parameters: Mapping[str, str]) -> None:
        """Send the first message."""
        form = self._form
        await self.send(
            type="setup",
            sessionId="VX1",
            accountSid=form["AccountSid"],
            callSid=form["CallSid"],
            parentCallSid="",
            direction="inbound",
            callType="PSTN",
            callStatus="RINGING",
            customParameters=dict(parameters),
            **{"from": form["From"], "to": form["To"]},
        )

    async def send(self, **message: Any) -> None:
        """Send a message as the carrier; nothing if the socket is closed."""
        with suppress(ConnectionClosedError):
            await self._socket.send(json.dumps(message))

    async def send_raw(self, data: str | bytes) -> None:
        """Send anything; nothing if the socket is closed."""
        with suppress(ConnectionClosedError):
            await self._socket.send(data)

    def end_with(self, then: str) -> None:
        """Record what comes after the relay."""
        self.then = then

    # --- the caller -----------------------------------------------------------------------------

    async def says(self, text: str) -> None:
        """Speak, over the agent if it speaks, and be transcribed."""
        await self.begins_to_speak()
        await trio.sleep(len(text) / self._twilio.chars_per_s)
        await self._report(name="clientSpeaking", value="off")
        await trio.sleep(TURN_S)
        await self.send(type="prompt", voicePrompt=text, lang="en-US", last=True)

    async def begins_to_speak(self) -> None:
        """Begin to speak: that interrupts the agent where it may be."""
        await self._report(name="clientSpeaking", value="on")
        if self._cycles and self._cycles[0].interruptible and self._is_speaking:
            fragment = self._cut()
            self._cycles.clear()
            duration_ms = round((trio.current_time() - self._clause_at_s) * 1000)
            await self._report_spoken(fragment)
            await self.send(
                type="interrupt",
                utteranceUntilInterrupt=fragment.strip() if self._twilio.tells else self.heard,
                durationUntilInterruptMs=duration_ms,
            )
            await self._set_speaking(on=False)

    async def press(self, key: str) -> None:
        """Press a key."""
        await self.send(type="dtmf", digit=key)

    async def quiet(self, for_s: float = 3.0) -> None:
        """Wait until the agent has said nothing for a while, or the call is over."""
        while not self._over.is_set():
            with trio.move_on_after(for_s) as patience:
                await self._changes.park()
            if patience.cancelled_caught and not self._cycles:
                return

    async def over(self) -> None:
        """Wait until the agent has ended the call."""
        await self._over.wait()

    # --- the carrier ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Speak what the agent sends, until the call is over."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._speak)
            try:
                while True:
                    await self._obey(json.loads(await self._socket.receive()))
            except ConnectionClosedError as closed:
                self.close_code = closed.code
            self._cut()
            self._over.set()
            self._changes.unpark_all()
            nursery.cancel_scope.cancel(reason="the socket is closed")

    async def _obey(self, message: dict[str, Any]) -> None:
        self.received.append(message)
        match message["type"]:
            case "text":
                await self._queue(message)
            case "sendDigits":
                self.digits += message["digits"]
                await self._report(name="tokensPlayed", value=message["digits"])
            case "end":
                self.handoff = message.get("handoffData", "")
        self._changes.unpark_all()

    async def _queue(self, message: dict[str, Any]) -> None:
        if not self._cycles or self._cycles[-1].is_closed:
            stopped = [one for one in self._cycles if one.preemptible]
            if stopped and self._cycles[0].preemptible:
                await self._report_spoken(self._cut())
            self._cycles = [one for one in self._cycles if not one.preemptible]
            self._cycles.append(
                _Cycle(message.get("interruptible", True), message.get("preemptible", False))
            )
        cycle = self._cycles[-1]
        cycle.text += message["token"]
        cycle.is_closed = message["last"]

    async def _speak(self) -> None:
        while True:
            cycle = self._cycles[0] if self._cycles else None
            clause = "" if cycle is None else cycle.clause()
            if cycle is None or not clause.strip():
                if cycle is not None and cycle.is_closed:
                    self._cycles.remove(cycle)
                    self._changes.unpark_all()
                    continue
                if cycle is None:
                    await self._set_speaking(on=False)
                await self._changes.park()
                continue
            if not self._is_speaking:
                await trio.sleep(START_S)
                if not self._cycles or self._cycles[0] is not cycle:
                    continue
                await self._set_speaking(on=True)
            await self._speak_clause(cycle, clause)

    async def _speak_clause(self, cycle: _Cycle, clause: str) -> None:
        self._clause, self._clause_at_s = clause, trio.current_time()
        with trio.CancelScope() as self._sounding:
            await trio.sleep(len(clause) / self._twilio.chars_per_s)
        self._sounding = None
        if self._clause:  # nobody has cut it
            self._clause = ""
            cycle.at += len(clause)
            self._hear(clause)
            await self._report_spoken(clause)

    def _cut(self) -> str:
        """Stop the clause that is being spoken, and return the words of it that were heard."""
        clause, self._clause = self._clause, ""
        if not clause:
            return ""
        if self._sounding is not None:
            self._sounding.cancel(reason="it is cut")
        chars = int((trio.current_time() - self._clause_at_s) * self._twilio.chars_per_s)
        if chars < len(clause) and not clause[chars].isspace():
            chars = clause.rfind(" ", 0, chars) + 1
        self._hear(clause[:chars])
        return clause[:chars]

    def _hear(self, text: str) -> None:
        self.heard += text
        self._hears(text)

    async def _set_speaking(self, *, on: bool) -> None:
        if self._is_speaking != on:
            self._is_speaking = on
            await self._report(name="agentSpeaking", value="on" if on else "off")

    async def _report_spoken(self, text: str) -> None:
        if text.strip():
            await self._report(name="tokensPlayed", value=text)

    async def _report(self, **info: str) -> None:
        if self._twilio.tells:
            await self.send(type="info", **info)


async def _post_form(
    stream: trio.abc.Stream, host: str, path: str, headers: Mapping[str, str], body: bytes
) -> tuple[int, bytes]:
    """Post a form, and return the status and the body of the answer.

    Args:
        stream: A new stream to the server; closed at the end.
        host: The ``Host`` of the request.
        path: The path, with its query.
        headers: Further headers.
        body: The form.
    """
    head = {"Host": host, "Content-Type": FORM, "Content-Length": str(len(body)), **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    got = b""
    async with stream:
        await stream.send_all(f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + body)
        while data := await stream.receive_some(65_536):
            got += data
    answer, _, content = got.partition(b"\r\n\r\n")
    return int(answer.split()[1]) if answer else 0, content
