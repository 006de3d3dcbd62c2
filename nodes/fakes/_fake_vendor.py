"""The base of fake WebSocket services: connections and their faults.

The other files here have the messages of each vendor.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, ClassVar

import trio
from websockets.http11 import Response

from bargein.bridge.websocket import (
    ConnectionClosedError,
    Data,
    HttpRequest,
    WebSocket,
    accept,
    http_response,
    using,
)

from ._fake_service import FLOOD_BYTES, SLOW_S, FakeService, FaultCountdown
from ._fault import Fault, FaultKind, FaultStage

GARBAGE: tuple[Data, ...] = (
    "",
    "no json",
    "[]",
    "null",
    "7",
    "{}",
    '{"type": 7}',
    '{"message_type": null}',
    "[" * 5000,
    b"\xff\x00",
)
"""Messages that nobody can parse, as text and binary."""

AFTER_S = 0.05
"""How long after a result a connection with the stage "after" ends, in seconds."""


class FakeLine:
    """The vendor's end of one connection.

    Attributes:
        path: The path of the request, with its query.
        headers: The headers of the handshake.
        is_silent: Whether the fake has stopped sending.
    """

    def __init__(self, countdown: FaultCountdown) -> None:
        self.path = ""
        self.headers: Mapping[str, str] = {}
        self._countdown = countdown
        self._socket: WebSocket | None = None
        self._reordered: Data | None = None
        self._has_reordered = self._has_flooded = False
        self.is_silent = False

    def has(self, kind: FaultKind) -> bool:
        """Return whether this connection has a fault of this kind."""
        fault = self._countdown.fault
        return fault is not None and fault.kind == kind

    def open(self, request: HttpRequest, socket: WebSocket) -> None:
        """Start carrying messages."""
        self.path, self.headers, self._socket = request.path, request.headers, socket

    async def receive(self) -> Data:
        """Return the next message.

        Raises:
            ConnectionClosedError: The other side has left.
        """
        assert self._socket is not None
        if self.has("deaf"):
            await trio.sleep_forever()
        return await self._socket.receive()

    async def say(self, message: Mapping[str, Any] | Data) -> None:
        """Send a message that is not part of a result, and so has no faults.

        Raises:
            ConnectionClosedError: The other side has left.
        """
        if not self.is_silent:
            await self._send(encoded(message))

    async def give(
        self,
        message: Mapping[str, Any] | Data,
        at: FaultStage,
        *,
        error: Mapping[str, Any] | None = None,
        time_keys: tuple[str, ...] = (),
    ) -> None:
        """Send a part of a result, with the fault for that stage.

        Args:
            message: The message without a fault.
            at: The part of the result that it is.
            error: The vendor's message for an error; ``None`` if it has none.
            time_keys: The fields of the message that are times.

        Raises:
            ConnectionClosedError: The other side has left.
        """
        if self.is_silent:
            return
        fault = self._countdown.fault
        data = encoded(message)
        if fault is not None and fault.at == at:
            await self._send_wrongly(fault, data, message, error, time_keys)
            return
        await self._send_in_turn(data)
        if fault is not None and (fault.at, at) == ("after", "last"):
            await trio.sleep(AFTER_S)  # lets the message arrive
            self._end(fault)

    async def _send_wrongly(
        self,
        fault: Fault,
        data: Data,
        message: Mapping[str, Any] | Data,
        error: Mapping[str, Any] | None,
        time_keys: tuple[str, ...],
    ) -> None:
        match fault.kind:
            case "stall" | "drop" | "close":
                self._end(fault)
            case "error" if error is not None:
                self._countdown.count()
                await self._send(encoded(error))
            case "garbage":
                for rubbish in GARBAGE:
                    await self._send(rubbish)
                await self._send_in_turn(data)
            case "duplicate":
                await self._send_in_turn(data)
                await self._send(data)
            case "reorder" if not self._has_reordered:
                self._has_reordered, self._reordered = True, data
            case "slow":
                await trio.sleep(SLOW_S)
                await self._send_in_turn(data)
            case "backwards":
                await self._send_in_turn(encoded(_turned_back(message, time_keys)))
            case "flood" if not self._has_flooded:
                self._has_flooded = True
                for _ in range(FLOOD_BYTES // len(data)):
                    await self._send(data)
            case _:
                await self._send_in_turn(data)

    def _end(self, fault: Fault) -> None:
        """Stop sending, or end the connection."""
        self._countdown.count()
        if fault.kind == "drop":
            self.cut()
        elif fault.kind == "close":
            self.close(1011, "the service restarts")
        else:
            self.is_silent = True

    def cut(self) -> None:
        """Break the connection."""
        assert self._socket is not None
        self.is_silent = True
        self._socket.connection.cut("gone")

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection in good order."""
        assert self._socket is not None
        self._socket.close(code, reason)

    async def _send_in_turn(self, data: Data) -> None:
        await self._send(data)
        if self._reordered is not None:
            delayed, self._reordered = self._reordered, None
            await self._send(delayed)

    async def _send(self, data: Data) -> None:
        assert self._socket is not None
        await self._socket.send(data)


class FakeVendor(FakeService):
    """The base of fake WebSocket services: in memory by `dial`, or over real sockets by `serve`.

    Attributes:
        faults: The faults that it can play.
        requests: The paths of the last 50 requests, the newest last.
        received: The last 100 messages that it received, without audio, the newest last.
    """

    error: ClassVar[Mapping[str, Any] | None] = None
    """The vendor's message for an error; ``None`` if it has none."""

    time_keys: ClassVar[tuple[str, ...]] = ()
    """The fields of its messages that are times."""

    needed_keys: ClassVar[tuple[str, ...]] = ()
    """The fields without which nobody knows what a message says; all others may be anything."""

    def __init__(self, fault: Fault | None = None) -> None:
        """Make a fake without connections.

        Args:
            fault: The fault to play; ``None`` for none.

        Raises:
            ValueError: This fake cannot play that fault.
        """
        super().__init__(fault)
        self.requests: deque[str] = deque(maxlen=50)
        self.received: deque[dict[str, Any]] = deque(maxlen=100)
        self.lines = 0
        """How many connections it has had."""

    async def handle(self, stream: trio.abc.Stream) -> None:
        """Serve one connection.

        Args:
            stream: A new stream, from which nothing has been read.
        """
        line = FakeLine(self._countdown)
        is_known = not line.has("deaf")  # a deaf fake does not notice the end either
        self.open_lines += is_known
        self.lines += 1
        try:

            async def answer(request: HttpRequest) -> Response | None:
                return await self._answer(request, stream)

            opened = await accept(stream, answer, handshake_s=math.inf, ping_s=None)
            if opened is None:
                return
            request, connection = opened
            self.requests.append(request.path)
            try:
                async with using(connection, max_waiting_bytes=65_536) as socket:
                    line.open(request, socket)
                    await self.talk(line)
            except* ConnectionClosedError:
                pass  # the other side has left
        finally:
            self._left(is_known)

    # --- for subclasses -------------------------------------------------------------------------

    def admit(self, request: HttpRequest) -> tuple[int, Mapping[str, Any]] | None:
        """Return the status and the body of a refusal; ``None`` accepts the request.

        By default one without a key is refused.

        Args:
            request: The request of the handshake.
        """
        headers = (f"{name}: {value}" for name, value in request.headers.raw_items())
        return self.refusal_without_key("\n".join([request.path, *headers]))

    def message(self, data: Data) -> dict[str, Any]:
        """Return a message that is JSON, and keep it in `received`.

        Raises:
            ValueError: It is none.
        """
        message: dict[str, Any] = json.loads(data)
        self.received.append(message)
        return message

    async def talk(self, line: FakeLine) -> None:
        """Serve a line until it is over.

        Raises:
            ConnectionClosedError: The other side has left.
        """
        raise NotImplementedError

    async def give(self, line: FakeLine, message: Mapping[str, Any] | Data, at: FaultStage) -> None:
        """Send a part of a result.

        Args:
            line: The connection to send it on.
            message: The message without a fault.
            at: The part of the result that it is.
        """
        await line.give(message, at, error=self.error, time_keys=self.time_keys)

    # --------------------------------------------------------------------------------------------

    async def _answer(self, request: HttpRequest, stream: trio.abc.Stream) -> Response | None:
        fault = self._countdown.fault
        if fault is not None and fault.at == "connect":
            self._countdown.count()
            if fault.kind == "stall":
                await _until_left(stream)
            elif fault.kind in ("drop", "close"):
                await trio.aclose_forcefully(stream)
            elif fault.kind == "slow":
                await trio.sleep(SLOW_S)
            elif fault.kind == "refuse":
                return _refusal(fault.status, {"error": "not now"})
        refused = self.admit(request)
        return None if refused is None else _refusal(*refused)


async def _until_left(stream: trio.abc.Stream) -> None:
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        while await stream.receive_some(4096):
            continue


def encoded(message: Mapping[str, Any] | Data) -> Data:
    """Return a message in its wire format."""
    return message if isinstance(message, str | bytes) else json.dumps(message)


def _refusal(status: int, body: Mapping[str, Any]) -> Response:
    return http_response(HTTPStatus(status), "application/json", json.dumps(body).encode())


def _turned_back(message: Any, keys: tuple[str, ...]) -> Any:
    """Return a message whose times are negative and in the wrong order."""
    if isinstance(message, Mapping):
        return {
            name: _negative(value) if name in keys else _turned_back(value, keys)
            for name, value in message.items()
        }
    if isinstance(message, list):
        return [_turned_back(one, keys) for one in message]
    return message


def _negative(value: Any) -> Any:
    if isinstance(value, list):
        return [-1 - 2 * one for one in value]
    return -1 - 2 * value if isinstance(value, int | float) else value
