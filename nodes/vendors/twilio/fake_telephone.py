"""A telephone on the fake Twilio, whatever travels: who is on it, and what was told about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import trio

from bargein.bridge.websocket import ConnectionClosedError, WebSocket


class FakeTelephone:
    """A telephone in a call.

    Attributes:
        sid: The id of the call.
        number: The number of the person.
        attributes: Those of the element that has connected the agent.
        received: The messages of the agent, decoded.
        handoff: What the agent handed on when it ended the relay; ``None`` before.
        then: The answer of the webhook that was asked what comes next.
        close_code: The code with which the socket was closed; ``None`` while it is open.
        music: What is played to the person, over and over; empty for nothing.
        talks_to: The numbers of the people that the person is connected with.
    """

    def __init__(self, form: Mapping[str, str], number: str) -> None:
        """Make the telephone of one call.

        Args:
            form: What the webhooks are told about the call.
            number: The number of the person.
        """
        self.sid = form["CallSid"]
        self.number = number
        self.attributes: Mapping[str, str] = {}
        self.received: list[dict[str, Any]] = []
        self.handoff: str | None = None
        self.then = ""
        self.close_code: int | None = None
        self.music = ""
        self.talks_to: tuple[str, ...] = ()
        self._form = form
        self._hang_up: Callable[[], None] = lambda: None
        self._socket: WebSocket | None = None
        self._carried_by: trio.abc.Stream | None = None
        self._changes = trio.lowlevel.ParkingLot()
        self._over = trio.Event()

    async def connect(
        self, socket: WebSocket, attributes: Mapping[str, str], parameters: Mapping[str, str]
    ) -> None:
        """Connect the person with an agent, and send the first messages."""
        raise NotImplementedError

    async def run(self, socket: WebSocket) -> None:
        """Carry what the agent sends, until the socket is closed."""
        raise NotImplementedError

    async def send(self, **message: Any) -> None:
        """Send a message as the carrier; nothing if the socket is closed."""
        await self.send_raw(json.dumps(message))

    async def send_raw(self, data: str | bytes) -> None:
        """Send anything; nothing if the socket is closed."""
        if self._socket is not None:
            with suppress(ConnectionClosedError):
                await self._socket.send(data)

    def next_is(self, then: str) -> None:
        """Record what comes after the agent."""
        self.then = then

    def meet(self, *numbers: str) -> None:
        """Connect the person with others; no agent hears them from then on."""
        self.talks_to = numbers
        self._over.set()

    def play(self, music: str) -> None:
        """Play something to the person, until something else comes."""
        self.music = music

    def end(self) -> None:
        """Record that the call is over."""
        self.play("")
        self.talks_to = ()
        self._over.set()
        self._changes.unpark_all()

    def hang_up(self) -> None:
        """Hang up."""
        self._hang_up()

    def let_hang_up(self, hang_up: Callable[[], None]) -> None:
        """Record how one hangs up."""
        self._hang_up = hang_up

    def is_on(self, stream: trio.abc.Stream) -> None:
        """Record over what the person is connected with an agent."""
        self._carried_by = stream

    async def cut_off(self) -> None:
        """Lose the connection with the agent, without a word to either."""
        if self._carried_by is not None:
            await self._carried_by.aclose()

    async def over(self) -> None:
        """Wait until no agent is on the line any more: it has ended the call, or passed it on."""
        await self._over.wait()
