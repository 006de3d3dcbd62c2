"""A fake of Vapi with a custom model: it hears and speaks, and asks for chat completions.

Each request has the whole conversation, as the caller has heard it; when the caller speaks over an
answer, its request is closed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import trio

from bargein.bridge.wires.harness import CompletionsWire
from bargein.nodes.fakes.platforms import FarVoice, HttpRefusedError
from bargein.routes.service_nursery import open_service_nursery

__all__ = ["FakeVapi", "FakeVapiCall"]

TURN_S = 0.7
"""How long after the caller's last word a completion is asked for, in seconds."""

Dial = Callable[[], Awaitable[trio.abc.Stream]]
"""Opens a stream to the server."""


class FakeVapi:
    """An assistant of Vapi's with a custom model, in memory.

    Attributes:
        chars_per_s: How fast its voice and its callers speak, in characters a second.
        streams: Whether it asks for streamed answers.
    """

    def __init__(self, *, chars_per_s: float = 15.0, streams: bool = True) -> None:
        """Make an assistant without calls.

        Args:
            chars_per_s: How fast its voice and its callers speak, in characters a second.
            streams: Whether it asks for streamed answers.
        """
        self.chars_per_s = chars_per_s
        self.streams = streams
        self._count = count(1)

    def wire(self) -> CompletionsWire:
        """Return the wire that it calls."""
        return CompletionsWire()

    @asynccontextmanager
    async def call(
        self, dial: Dial, *, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[FakeVapiCall]:
        """Let a caller call the app, until the end of the block.

        Args:
            dial: Opens a stream to the server; called for each request.
            headers: Further headers of the requests.
        """
        call = FakeVapiCall(self, dial, f"call-{next(self._count)}", dict(headers or {}))
        async with open_service_nursery("the call is over") as nursery:
            call.attend(nursery)
            try:
                yield call
            finally:
                nursery.cancel_scope.cancel(reason="the caller hangs up")


class FakeVapiCall:
    """A call, from the caller's side.

    Attributes:
        messages: The conversation, as the caller has heard it.
        refused: The error of a request that was refused; ``None`` for none.
    """

    def __init__(
        self, vapi: FakeVapi, dial: Dial, call_id: str, headers: Mapping[str, str]
    ) -> None:
        self.messages: list[dict[str, str]] = [{"role": "system", "content": "Be kind."}]
        self.refused: HttpRefusedError | None = None
        self._vapi = vapi
        self._dial = dial
        self._facts = {"id": call_id, "customer": {"number": "+15550001"}}
        self._headers = headers
        self._voice = FarVoice(
            vapi.chars_per_s,
            spoke=self._note_change,
            changed=self._note_change,
        )
        self._heard_before = 0
        self._answering: trio.CancelScope | None = None
        self._changes = trio.lowlevel.ParkingLot()
        self._nursery: trio.Nursery

    @property
    def heard(self) -> str:
        """What the caller has heard, to the word."""
        return self._voice.heard

    def attend(self, nursery: trio.Nursery) -> None:
        """Ask for the first words, and run the voice until it is cancelled."""
        self._nursery = nursery
        nursery.start_soon(self._voice.run)
        self._ask_soon()

    def _note_change(self, change: object) -> None:
        self._changes.unpark_all()

    async def says(self, text: str) -> None:
        """Speak, over the agent if it speaks; return when a completion is asked for."""
        self._voice.cut()
        if self._answering is not None:
            self._answering.cancel(reason="the caller interrupts")
        heard = self.heard[self._heard_before :].strip()
        self._heard_before = len(self.heard)
        if heard:
            self.messages.append({"role": "assistant", "content": heard})
        await trio.sleep(len(text) / self._vapi.chars_per_s + TURN_S)
        self.messages.append({"role": "user", "content": text})
        self._ask_soon()

    async def quiet(self, for_s: float = 3.0) -> None:
        """Wait until the agent has said nothing for a while."""
        while True:
            with trio.move_on_after(for_s) as patience:
                await self._changes.park()
            if patience.cancelled_caught and self._voice.is_idle and self._answering is None:
                return

    def _ask_soon(self) -> None:
        # The scope stands before the task runs, for who speaks over it in the same moment.
        self._answering = trio.CancelScope()
        self._nursery.start_soon(self._ask, self._answering)

    async def _ask(self, scope: trio.CancelScope) -> None:
        """Ask for a completion, and speak it."""
        asked = {
            "model": "agent",
            "messages": list(self.messages),
            "stream": self._vapi.streams,
            "call": self._facts,
        }
        with scope:
            try:
                async for piece in completion(await self._dial(), asked, self._headers):
                    self._voice.say(piece)
                    self._changes.unpark_all()
            except HttpRefusedError as error:
                self.refused = error
            self._voice.close_turn()
        if self._answering is scope:
            self._answering = None
        self._changes.unpark_all()


async def completion(
    stream: trio.abc.Stream, asked: Mapping[str, Any], headers: Mapping[str, str]
) -> AsyncIterator[str]:
    """Ask for a completion, and yield its text as it comes.

    Args:
        stream: A new stream to the server; closed at the end.
        asked: The body.
        headers: Further headers.

    Raises:
        HttpRefusedError: The status is not 200.
    """
    body = json.dumps(asked).encode()
    head = {"Host": "localhost", "Content-Type": "application/json", **headers}
    head["Content-Length"] = str(len(body))
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    got = b""
    async with stream:
        await stream.send_all(f"POST /v1/chat/completions HTTP/1.1\r\n{lines}\r\n".encode() + body)
        while b"\r\n\r\n" not in got:
            data = await stream.receive_some(65_536)
            if not data:
                raise HttpRefusedError(0, got)
            got += data
        answer, _, got = got.partition(b"\r\n\r\n")
        status = int(answer.split()[1])
        if status != 200 or not asked.get("stream"):
            while data := await stream.receive_some(65_536):
                got += data
            if status != 200:
                raise HttpRefusedError(status, got)
            yield json.loads(got)["choices"][0]["message"]["content"]
            return
        while True:
            while (at := got.find(b"\n\n")) >= 0:
                event, got = got[:at], got[at + 2 :]
                _, _, said = event.partition(b"data: ")
                if said == b"[DONE]":
                    return
                for choice in json.loads(said)["choices"]:
                    if text := choice["delta"].get("content"):
                        yield text
            data = await stream.receive_some(65_536)
            if not data:
                return
            got += data
