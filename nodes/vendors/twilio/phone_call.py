"""A telephone call under test: wire, port and carrier, in memory and in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass
from typing import final

import trio

from bargein.bridge import App, Call, SpeechStack
from bargein.bridge.server import Server, open_server
from bargein.bridge.testing import SpelledSpeech
from bargein.bridge.testing.heard_answers import heard_answers
from bargein.nodes.fakes import MemoryListener

from ._played_carriers import FakeCarrier, PlayedLine, WireName, played_carrier
from .fake import FakeTwilio
from .fake_twiml import Dial

PUBLIC_URL = "https://voice.example.com"

__all__ = ["PhoneCall", "open_phone"]


@final
@dataclass(frozen=True, slots=True)
class PhoneCall:
    """A telephone call under test; made by ``open_phone()``."""

    call: Call
    """The call, as the agent sees it."""
    line: PlayedLine
    """The caller and the carrier: what was really heard is ``line.heard``."""
    server: Server
    """The server."""
    dial: Dial
    """Opens a stream to the server, for ``FakeTwilio.call()`` of further callers."""

    @property
    def heard(self) -> str:
        """What the caller has heard of the agents so far, according to the call's history.

        A line break separates what different answers have said.
        """
        return "\n".join(map(str.strip, heard_answers(self.call)))

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
    wire: WireName = "twilio",
    speech: SpeechStack | None = None,
    caller: str = "+15550001",
    called: str = "+15550100",
    twilio: FakeTwilio | None = None,
    carrier: FakeCarrier | None = None,
) -> AsyncIterator[PhoneCall]:
    """Ring an agent: webhook, socket and all, without a network; leaving the block hangs up.

    Under a mock clock a call takes milliseconds, and all times are exact.

    Args:
        answer: What answers, or an app.
        wire: By which wire the call comes: "twilio" and "telnyx", by which the carrier hears and
            speaks, or one by which sound travels.
        speech: The ears and the voice of a call whose sound travels; ``None`` for a
            ``SpelledSpeech``, whose sound the line can read, so that ``says()`` and ``line.heard``
            have texts.
        caller: The number that calls.
        called: The number that is called.
        twilio: The carrier, if that is Twilio; ``None`` makes one.
        carrier: The carrier, such as a ``FakePlivo``; ``None`` makes one.

    Yields:
        The call.

    Raises:
        CarrierRefusedError: The server does not take the call.
        ValueError: There is no such wire, or `speech` is given for one by which text travels.
    """
    played = played_carrier(wire, "open_phone(wire=)")
    if speech is not None and played.carries == "text":
        raise ValueError(
            f"open_phone(speech=) needs a wire by which sound travels: by {wire!r} text travels"
        )
    fake: FakeCarrier = carrier or twilio or played.fake()
    if isinstance(fake, FakeTwilio):
        fake.carry(played.carries)
    app = copy(answer) if isinstance(answer, App) else App(answer)
    opened: list[Call] = []
    is_open = trio.Event()
    own_answer = app.answer

    async def answer_and_tell(call: Call) -> None:
        opened.append(call)
        is_open.set()
        await own_answer(call)

    app.answer = answer_and_tell
    if played.carries == "sound" and speech is None:
        speech = SpelledSpeech()
    app.phone = played.account(fake, speech, fake.transport())
    wires = app.phone.wires(PUBLIC_URL)
    door = MemoryListener()
    async with (
        open_server(
            app, wires=wires, listeners=[door], public_url=PUBLIC_URL, token="of nobody at all"
        ) as server,
        fake.call(
            door.dial, voice_url=PUBLIC_URL + played.voice_path, caller=caller, called=called
        ) as line,
    ):
        await is_open.wait()
        yield PhoneCall(opened[0], line, server, door.dial)
