"""A fake of Retell: it hears and speaks, and asks an app for words, as its page describes.

It tells the whole transcript with each message, and decides itself when the caller has interrupted:
then it falls silent, and asks for another response, which makes older ones void.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

import trio

from bargein.bridge.websocket import ConnectionClosedError, WebSocket, open_websocket
from bargein.bridge.wires.harness import RetellWire
from bargein.nodes.fakes.platforms import FarVoice
from bargein.routes.service_nursery import open_service_nursery

__all__ = ["FakeRetell", "FakeRetellCall"]

TURN_S = 0.7
"""How long after the caller's last word a response is asked for, in seconds."""

TOLD_WORDS = 3
"""After how many words the transcript is told."""

SECRET = "a-secret-of-fakes"  # of nobody else


class FakeRetell:
    """A Retell agent with a custom model, in memory.

    Attributes:
        chars_per_s: How fast its voice and its callers speak, in characters a second.
    """

    def __init__(self, *, chars_per_s: float = 15.0) -> None:
        """Make an agent without calls.

        Args:
            chars_per_s: How fast its voice and its callers speak, in characters a second.
        """
        self.chars_per_s = chars_per_s
        self._count = count(1)

    def wire(self) -> RetellWire:
        """Return the wire that it calls."""
        return RetellWire(SECRET)

    @asynccontextmanager
    async def call(
        self,
        dial: Callable[[], Awaitable[trio.abc.Stream]],
        *,
        url: str = f"ws://localhost/retell/{SECRET}",
        details: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[FakeRetellCall]:
        """Let a caller call the app, until the end of the block or of the call.

        Args:
            dial: Opens a stream to the server.
            url: The address of the custom model, to which Retell appends the call's id.
            details: What Retell knows of the call.

        Raises:
            HandshakeRefusedError: The socket is refused.
        """
        call_id = f"call_{next(self._count)}"
        stream = await dial()
        async with open_websocket(f"{url}/{call_id}", stream=stream, ping_s=None) as socket:
            known = {"call_id": call_id, "from_number": "+15550001", **(details or {})}
            call = FakeRetellCall(self.chars_per_s, socket, known)
            async with open_service_nursery("the call is over") as nursery:
                call.attend(nursery)
                try:
                    yield call
                finally:
                    nursery.cancel_scope.cancel(reason="the caller hangs up")


class FakeRetellCall:
    """A call, from the caller's side.

    Attributes:
        received: The messages of the app, decoded.
        digits: The keys that the app has pressed.
        transferred_to: The number that the app has transferred the caller to; empty for none.
        close_code: The code with which the socket was closed; ``None`` while it is open.
    """

    def __init__(self, chars_per_s: float, socket: WebSocket, details: dict[str, Any]) -> None:
        self.received: list[dict[str, Any]] = []
        self.digits = ""
        self.transferred_to = ""
        self.close_code: int | None = None
        self._chars_per_s = chars_per_s
        self._socket = socket
        self._details = details
        self._voice = FarVoice(chars_per_s, spoke=self._note_word, changed=self._note_change)
        self._transcript: list[dict[str, str]] = []
        self._words = 0
        self._response = 0
        self._interrupt = 0
        self._hears_caller = False
        self._ends = False
        self._changes = trio.lowlevel.ParkingLot()
        self._over = trio.Event()
        self._nursery: trio.Nursery

    @property
    def heard(self) -> str:
        """What the caller has heard, to the word."""
        return self._voice.heard

    def attend(self, nursery: trio.Nursery) -> None:
        """Run the call's tasks, until they are cancelled."""
        self._nursery = nursery
        nursery.start_soon(self._voice.run)
        nursery.start_soon(self._listen)

    async def send(self, **message: Any) -> None:
        """Send a message as Retell; nothing if the socket is closed."""
        with suppress(ConnectionClosedError):
            await self._socket.send(json.dumps(message))

    async def send_raw(self, data: str | bytes) -> None:
        """Send anything; nothing if the socket is closed."""
        with suppress(ConnectionClosedError):
            await self._socket.send(data)

    async def update(self, **fields: Any) -> None:
        """Tell the transcript."""
        told = [dict(each) for each in self._transcript]
        await self.send(interaction_type="update_only", transcript=told, **fields)

    # --- the caller -----------------------------------------------------------------------------

    async def says(self, text: str) -> None:
        """Speak, over the agent if it speaks; return when a response is asked for."""
        self._hears_caller = True
        self._voice.cut()
        await self.update(turntaking="user_turn")
        await trio.sleep(len(text) / self._chars_per_s)
        self.add("user", text)
        await self.update()
        await trio.sleep(TURN_S)
        self._hears_caller = False
        await self.ask()

    async def ask(self, kind: str = "response_required") -> None:
        """Ask for a response, or for a reminder; older ones are void."""
        self._response += 1
        told = [dict(each) for each in self._transcript]
        await self.send(interaction_type=kind, response_id=self._response, transcript=told)

    def add(self, role: str, text: str) -> None:
        """Add to what was said, to the last utterance if that is of the same side."""
        if self._transcript and self._transcript[-1]["role"] == role:
            joint = "" if role == "agent" else " "
            self._transcript[-1]["content"] += joint + text
        else:
            self._transcript.append({"role": role, "content": text})

    async def quiet(self, for_s: float = 3.0) -> None:
        """Wait until the agent has said nothing for a while, or the call is over."""
        while not self._over.is_set():
            with trio.move_on_after(for_s) as patience:
                await self._changes.park()
            if patience.cancelled_caught and self._voice.is_idle:
                return

    async def over(self) -> None:
        """Wait until the call is over."""
        await self._over.wait()

    # --- Retell ---------------------------------------------------------------------------------

    async def _listen(self) -> None:
        try:
            while True:
                await self._obey(json.loads(await self._socket.receive()))
        except ConnectionClosedError as closed:
            self.close_code = closed.code
        self._over.set()
        self._changes.unpark_all()

    async def _obey(self, message: dict[str, Any]) -> None:
        self.received.append(message)
        kind = message["response_type"]
        if kind == "config" and message["config"].get("call_details"):
            await self.send(interaction_type="call_details", call=self._details)
        elif kind == "response" and message["response_id"] == self._response:
            self._speak(message)
        elif kind == "agent_interrupt":
            if message["interrupt_id"] != self._interrupt:
                self._interrupt = message["interrupt_id"]
                self._voice.cut()
            self._speak(message)
        self._changes.unpark_all()

    def _speak(self, message: dict[str, Any]) -> None:
        allowed = not message.get("no_interruption_allowed")
        if not (self._hears_caller and allowed):
            self._voice.say(message["content"], interruptible=allowed)
        if message["content_complete"]:
            self._voice.close_turn()
        self.digits += message.get("digit_to_press", "")
        self.transferred_to = message.get("transfer_number", self.transferred_to)
        self._ends = self._ends or message.get("end_call", False)

    def _note_word(self, word: str) -> None:
        self.add("agent", word)
        self._words += 1
        if self._words % TOLD_WORDS == 0:
            self._nursery.start_soon(self.update)
        self._changes.unpark_all()

    def _note_change(self, speaks: bool) -> None:
        if not speaks:
            self._nursery.start_soon(self.update)
        self._changes.unpark_all()
