"""What the fake Twilio does with a call: it obeys TwiML, step by step, and asks what comes next."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import trio

from bargein.bridge.websocket import open_websocket
from bargein.routes import BargeinError

from .fake_call import FakeTwilioCall
from .fake_media import FakeMediaCall
from .fake_telephone import FakeTelephone

Dial = Callable[[], Awaitable[trio.abc.Stream]]
"""Opens a stream to the server."""

ASK_S = 5.0
"""How long a webhook may take after the call is over, in seconds."""

RING_S = 30.0
"""How long ``<Dial>`` and a placed call ring unless they say otherwise; Twilio's is 30 and 60 s."""


DETECT_S = 3.0
"""How long a carrier takes to tell who answers, in seconds."""


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


async def stay(line: FakeTelephone) -> None:
    """Stay on the line until no agent is on it any more."""
    await line.over()


@dataclass(frozen=True, slots=True)
class FakePhone:
    """Somebody else's telephone, and what happens when it is called."""

    answers: str | int = "yes"
    """``"yes"``, ``"busy"``, ``"no-answer"`` or ``"failed"``; or the code of the error with which
    Twilio refuses to call it, such as 21215."""
    rings_s: float = 2.0
    """How long it rings, in seconds."""
    talks_s: float = 60.0
    """How long its owner talks with a caller who was put through, in seconds."""
    detected: str = "human"
    """Who answers, as its carrier's detection says once it is on, in Twilio's words; empty if it
    cannot tell."""
    person: Callable[[Any], Awaitable[object]] = stay
    """What its owner does with an agent on the line; afterwards they wait, and hang up only by
    ``line.hang_up()``."""


class Account(Protocol):
    """The account whose calls these are."""

    phones: dict[str, FakePhone]

    def conference(self, name: str) -> FakeConference:
        """Return the conference of a name that is not over."""
        ...

    def sign(self, url: str, form: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the header of a signature."""
        ...

    async def post(self, dial: Dial, url: str, form: Mapping[str, str]) -> tuple[int, bytes]:
        """Ask a webhook, signed, and return the status and the body of its answer."""
        ...


@dataclass(slots=True, eq=False)
class FakeConference:
    """A conference."""

    lines: list[FakeTelephone] = field(default_factory=list)
    is_over: trio.Event = field(default_factory=trio.Event)

    async def host(self, line: FakeTelephone) -> None:
        """Let somebody in, and connect all who are there, until one of them leaves."""
        self.lines.append(line)
        self._introduce()
        try:
            await self.is_over.wait()
        finally:
            self.lines.remove(line)
            self._introduce()
            self.is_over.set()

    def _introduce(self) -> None:
        for one in self.lines:
            one.meet(*(other.number for other in self.lines if other is not one))


class FakeLeg:
    """One call at the carrier: a telephone, and what it is told to do."""

    def __init__(
        self,
        account: Account,
        dial: Dial,
        line: FakeTwilioCall | FakeMediaCall,
        form: dict[str, str],
        status_url: str = "",
    ) -> None:
        """Make a call that is not connected yet.

        Args:
            account: The account.
            dial: Opens a stream to the server.
            line: The telephone.
            form: What webhooks are told.
            status_url: What is asked when the status of the call changes; empty for nothing.
        """
        self.line = line
        self.form = form
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        self._account = account
        self._dial = dial
        self._status_url = status_url
        self._step = trio.CancelScope()
        self._given: bytes | None = None
        self._is_connected: Callable[[], object] = lambda: None
        line.let_hang_up(self.hang_up)

    @property
    def is_over(self) -> bool:
        """Whether the call is over."""
        return self.ended.is_set()

    # --- what is done to it by REST -------------------------------------------------------------

    def redirect(self, twiml: bytes) -> None:
        """Obey other TwiML from now on."""
        self._given = twiml
        self._step.cancel(reason="the call is redirected")

    def redirect_to(self, url: str) -> None:
        """Obey what a webhook answers from now on."""
        self.redirect(f"<Response><Redirect>{escape(url)}</Redirect></Response>".encode())

    def hang_up(self) -> None:
        """End the call."""
        self.scope.cancel(reason="the carrier ends the call")

    # --- its life -------------------------------------------------------------------------------

    async def ring(
        self, phone: FakePhone, answer_url: str, ring_s: float, detect_url: str = ""
    ) -> None:
        """Call somebody; once they answer, do what the webhook says."""
        with self.scope:
            await self._report("initiated")
            await self._report("ringing")
            fate = await ringing(phone, ring_s)
            if fate != "yes":
                self.ended.set()
                self.line.end()
                await self._report(fate)
                return
            await self._report("in-progress")
            status, twiml = await self._ask(answer_url)
            if status == 200:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._be_there, phone)
                    nursery.start_soon(self._detect, phone, detect_url)
                    await self._follow(twiml)
                    nursery.cancel_scope.cancel(reason="the call is over")
        self.ended.set()
        self.line.end()
        if self.scope.cancelled_caught and self.form["CallStatus"] in ("initiated", "ringing"):
            await self._report("canceled")
        elif self.form["CallStatus"] == "in-progress":
            await self._report("completed")

    async def _detect(self, phone: FakePhone, url: str) -> None:
        await trio.sleep(DETECT_S)
        if url and phone.detected:
            await self._ask(url, AnsweredBy=phone.detected, MachineDetectionDuration="3000")

    async def _be_there(self, phone: FakePhone) -> None:
        await phone.person(self.line)
        await self.line.over()
        await trio.sleep(phone.talks_s)
        self.hang_up()

    async def run(
        self, twiml: bytes, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Obey TwiML until the call is over; started once the person hears somebody."""
        self._is_connected = task_status.started
        try:
            with self.scope:
                await self._follow(twiml)
        finally:
            self.ended.set()
            self.line.end()

    async def _follow(self, twiml: bytes) -> None:
        while twiml:
            with trio.CancelScope() as self._step:
                twiml = await self._obey(twiml)
            if self._given is not None:
                twiml, self._given = self._given, None

    async def _obey(self, twiml: bytes) -> bytes:
        """Return what is to be obeyed next; empty at the end of the call."""
        for verb in ElementTree.fromstring(twiml):
            if verb.tag in ("Hangup", "Reject"):
                break
            told = await self._step_of(verb)
            action = verb.get("action", "")
            if action and told is not None:
                then = (await self._ask(action, **told))[1]
                self.line.next_is(then.decode())
                return then
        return b""

    async def _step_of(self, verb: ElementTree.Element) -> dict[str, str] | None:
        """Obey one verb; return what its action is told, or ``None`` to ask it nothing."""
        match verb.tag:
            case "Connect":
                return await self._connect(verb)
            case "Dial":
                return await self._run_dial(verb)
            case "Redirect":
                status, then = await self._ask(verb.text or "")
                self.line.next_is(then.decode())
                self._given = then if status == 200 else b""
                self._step.cancel(reason="the call goes on elsewhere")
            case "Play":
                self.line.play(verb.text or "")
                await trio.sleep(1.0 if verb.get("loop") != "0" else math.inf)
        return None

    async def _connect(self, verb: ElementTree.Element) -> dict[str, str] | None:
        relay = next(iter(verb), None)
        assert relay is not None, "the fake knows ConversationRelay and Stream"
        url = relay.get("url", "")
        given = {each.get("name", ""): each.get("value", "") for each in relay.iter("Parameter")}
        parts = urlsplit(url)
        stream = await self._dial()
        self.line.is_on(stream)
        async with open_websocket(
            f"ws://{parts.netloc}{parts.path}",
            headers=self._account.sign(url),
            stream=stream,
            ping_s=None,
        ) as socket:
            await self.line.connect(socket, dict(relay.attrib), given)
            self.form["CallStatus"] = "in-progress"
            self._is_connected()
            self._is_connected = lambda: None
            await self.line.run(socket)
        handoff = self.line.handoff
        if handoff is None:  # the agent has not ended it: the socket was closed, or lost
            return {"SessionStatus": "failed"}
        return {"SessionStatus": "ended", "HandoffData": handoff}

    async def _run_dial(self, verb: ElementTree.Element) -> dict[str, str]:
        room = verb.find("Conference")
        told = {"DialCallStatus": "canceled"}
        try:
            if room is not None:
                await self._confer(room.text or "")
                told = {"DialCallStatus": "completed"}
            else:
                told = {"DialCallStatus": await self._call_out(verb)}
        except trio.Cancelled:
            if self.scope.cancel_called and verb.get("action"):
                with trio.CancelScope(shield=True, deadline=trio.current_time() + ASK_S):
                    await self._ask(verb.get("action", ""), CallStatus="completed", **told)
            raise
        return told

    async def _confer(self, name: str) -> None:
        await self._account.conference(name).host(self.line)

    async def _call_out(self, verb: ElementTree.Element) -> str:
        inner = next(iter(verb), verb)
        number = (inner.text or "").strip()
        phone = self._account.phones.get(number, FakePhone())
        fate = await ringing(phone, float(verb.get("timeout", RING_S)))
        if fate != "yes":
            return fate
        tell = inner.get("statusCallback")
        if tell and "answered" in inner.get("statusCallbackEvent", "").split():
            await self._ask(tell, CallStatus="in-progress", ParentCallSid=self.line.sid)
        self.line.meet(number)
        await trio.sleep(phone.talks_s)
        return "completed"

    async def _report(self, status: str) -> None:
        self.form["CallStatus"] = status
        if self._status_url:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + ASK_S):
                await self._ask(self._status_url)

    async def _ask(self, url: str, **told: str) -> tuple[int, bytes]:
        return await self._account.post(self._dial, url, self.form | told)


async def ringing(phone: FakePhone, ring_s: float) -> str:
    """Return what becomes of a call to somebody: ``"yes"``, or Twilio's word for why not."""
    if phone.answers in ("failed",) or isinstance(phone.answers, int):
        return "failed"
    if phone.answers == "busy":
        await trio.sleep(min(1.0, ring_s))
        return "busy"
    lasts_s = ring_s if phone.answers == "no-answer" else min(phone.rings_s, ring_s)
    await trio.sleep(lasts_s)
    return "yes" if phone.answers == "yes" and phone.rings_s <= ring_s else "no-answer"


def check_relay(status: int, twiml: bytes) -> None:
    """Check that a webhook has taken a call.

    Raises:
        CarrierRefusedError: It has not.
    """
    answer = ElementTree.fromstring(twiml) if status == 200 else None
    if answer is None or answer.find("Connect/*") is None:
        raise CarrierRefusedError(status, twiml)


__all__ = ["CarrierRefusedError", "FakePhone"]
