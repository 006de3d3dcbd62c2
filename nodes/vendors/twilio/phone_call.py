"""A telephone call under test: wire, port and carrier, in memory and in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass
from typing import Literal, cast, final

import trio

from bargein.bridge import App, Call, SpeechStack
from bargein.bridge.server import Server, open_server
from bargein.bridge.testing import SpelledSpeech
from bargein.nodes.fakes import MemoryListener

from .fake import FakeTwilio
from .fake_call import FakeTwilioCall
from .fake_media import FakeMediaCall
from .phone import Twilio

PUBLIC_URL = "https://voice.example.com"

__all__ = ["PhoneCall", "open_phone"]


@final
@dataclass(frozen=True, slots=True)
class PhoneCall:
    """A telephone call under test; made by ``open_phone()``."""

    call: Call
    """The call, as the agent sees it."""
    line: FakeTwilioCall | FakeMediaCall
    """The caller and the carrier: what was really heard is ``line.heard``."""
    server: Server
    """The server."""

    @property
    def heard(self) -> str:
        """What the caller has heard of the agents so far, according to the call's history.

        A line break separates what different answers have said.
        """
        heard: dict[int, str] = {}
        for entry in self.call.history.entries:
            if entry.role == "agent":
                heard[entry.answer] = heard.get(entry.answer, "") + entry.heard
        return "\n".join(text.strip() for text in heard.values() if text.strip())

    async def says(self, text: str) -> None:
        """Speak, over the agent if it speaks; return when the words were transcribed."""
        await self.line.says(text)

    async def press(self, key: str) -> None:
        """Press a key."""
        await self.line.press(key)

    async def quiet(self) -> None:
        """Wait until the agent has said nothing for three seconds, or the call is over."""
        await self.line.quiet()


@asynccontextmanager
async def open_phone(
    answer: Callable[[Call], Awaitable[object]] | App,
    *,
    wire: Literal["twilio", "twilio-media"] = "twilio",
    speech: SpeechStack | None = None,
    caller: str = "+15550001",
    called: str = "+15550100",
    twilio: FakeTwilio | None = None,
) -> AsyncIterator[PhoneCall]:
    """Ring an agent: webhook, socket and all, without a network; leaving the block hangs up.

    Under a mock clock a call takes milliseconds, and all times are exact.

    Args:
        answer: What answers, or an app.
        wire: By which wire the call comes: "twilio", by which Twilio hears and speaks, or
            "twilio-media", by which sound travels.
        speech: The ears and the voice of a call whose sound travels; ``None`` for a
            ``SpelledSpeech``, whose sound the line can read, so that ``says()`` and ``line.heard``
            have texts.
        caller: The number that calls.
        called: The number that is called.
        twilio: The carrier; ``None`` makes one.

    Yields:
        The call.

    Raises:
        CarrierRefusedError: The server does not take the call.
        ValueError: There is no such wire, or `speech` is given for one by which text travels.
    """
    if wire not in ("twilio", "twilio-media"):
        raise ValueError(f"open_phone(wire=) is 'twilio' or 'twilio-media', not {wire!r}")
    if speech is not None and wire == "twilio":
        raise ValueError("open_phone(speech=) needs wire='twilio-media': by 'twilio' text travels")
    carrier = FakeTwilio() if twilio is None else twilio
    carrier.carry("text" if wire == "twilio" else "sound")
    app = copy(answer) if isinstance(answer, App) else App(answer)
    opened: list[Call] = []
    is_open = trio.Event()
    own_answer = app.answer

    async def answer_and_tell(call: Call) -> None:
        opened.append(call)
        is_open.set()
        await own_answer(call)

    app.answer = answer_and_tell
    if wire == "twilio-media" and speech is None:
        speech = SpelledSpeech()
    account = Twilio(
        speech=speech,
        account_sid=carrier.account_sid,
        auth_token=carrier.auth_token,
        transport=carrier.transport(),
    )
    app.phone = account
    wires = account.wires(PUBLIC_URL)
    door = MemoryListener()
    listeners = cast("Sequence[trio.SocketListener]", [door])
    async with (
        open_server(
            app, wires=wires, listeners=listeners, public_url=PUBLIC_URL, token="of nobody at all"
        ) as server,
        carrier.call(door.dial, caller=caller, called=called) as line,
    ):
        await is_open.wait()
        yield PhoneCall(opened[0], line, server)
