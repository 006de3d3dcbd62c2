"""A caller in Python: speaks, hears and types over the native protocol.

It keeps a simulated loudspeaker that plays in real time on trio's clock, so that a program can say
to the sample what a person at its place would have heard.
"""

from __future__ import annotations

import ssl as ssl_module
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal
from urllib.parse import urlencode, urlsplit, urlunsplit

import trio
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.trio.client import connect
from websockets.typing import Origin

from ._caller import FRAME_S as FRAME_S
from ._caller import Arrival as Arrival
from ._caller import Caller as Caller
from ._caller import CallOver as CallOver
from ._caller import Frames as Frames
from ._caller import Received as Received
from ._caller import Spoke as Spoke
from ._loudspeaker import Heard as Heard
from .server._native import AgentFrame as AgentFrame
from .server._native import Clear as Clear
from .server._native import Cut as Cut
from .server._native import Ended as Ended
from .server._native import ErrorMessage as ErrorMessage
from .server._native import Hello as Hello
from .server._native import OtherEvent as OtherEvent
from .server._native import Pong as Pong
from .server._native import ServerMessage as ServerMessage
from .server._native import Spoken as Spoken
from .server._native import State as State
from .server._native import Transcript as Transcript
from .server._native import UtteranceEnd as UtteranceEnd
from .server._native import decode_server
from .server._socket import Outbox, SafeClient

__all__ = [
    "AgentFrame",
    "Arrival",
    "CallOver",
    "Caller",
    "Clear",
    "Cut",
    "Ended",
    "ErrorMessage",
    "FRAME_S",
    "Frames",
    "Heard",
    "Hello",
    "OtherEvent",
    "Pong",
    "Received",
    "ServerMessage",
    "Spoken",
    "Spoke",
    "State",
    "Transcript",
    "UtteranceEnd",
    "open_caller",
]

GOODBYE_S = 2.0
"""Longest time that leaving may take."""


@asynccontextmanager
async def open_caller(
    url: str,
    *,
    mode: Literal["audio", "text"] = "audio",
    token: str | None = None,
    origin: str | None = None,
    microphone: Frames | None = None,
    buffer_s: float = 0.06,
    ssl: ssl_module.SSLContext | None = None,
    stream: trio.abc.Stream | None = None,
) -> AsyncIterator[Caller]:
    """Call a server; leaving the block hangs up.

    In audio mode the microphone is open all the time.

    Args:
        url: The server's address, ``ws://host:port/ws`` or the ``http://host:port/`` of its page.
        mode: ``text`` for a caller who reads and types.
        token: The server's bearer token, if it asks for one.
        origin: Origin header to send; None sends none, as programs do.
        microphone: Gives each frame that is sent.  None means one that sends what
            ``Caller.speak`` is given, and silence where nothing is said.
        buffer_s: Seconds between the first audio of an utterance and its first sound.
        ssl: Context for TLS; None takes the default for ``wss://`` and ``https://``.
        stream: A connection to use instead of opening one.

    Raises:
        ValueError: `url` is none of a call, or a microphone was given in text mode.
        OSError: The server cannot be reached.
        ConnectionError: It refused the call; the text has the status and the server's reason.
    """
    if microphone is not None and mode != "audio":
        raise ValueError(f"open_caller(): mode={mode!r} has no microphone; leave out microphone=")
    connecting = connect(
        _call_url(url, mode),
        stream=stream,
        ssl=ssl,
        origin=None if origin is None else Origin(origin),
        additional_headers={} if token is None else {"Authorization": f"Bearer {token}"},
        compression=None,
        proxy=None,
        max_size=None,
        close_timeout=GOODBYE_S,
        create_connection=SafeClient,
    )
    scope = trio.CancelScope()
    error: Exception | None = None
    async with trio.open_nursery() as nursery:
        try:
            caller: Caller = await nursery.start(
                _hold_line, connecting, scope, mode, microphone, buffer_s
            )
            try:
                yield caller
            finally:
                with trio.move_on_after(GOODBYE_S, shield=True):
                    caller.hang_up()
                    await caller.ended.wait()
        except Exception as caught:  # noqa: BLE001  # raised below, past the nursery and its group
            error = caught
        finally:
            scope.cancel(reason="the caller left")
    if error is not None:
        raise error


async def _hold_line(
    connecting: connect,
    scope: trio.CancelScope,
    mode: str,
    microphone: Frames | None,
    buffer_s: float,
    task_status: trio.TaskStatus[Caller],
) -> None:
    try:
        with scope:
            async with connecting as connection:
                assert isinstance(connection, SafeClient)  # by create_connection
                hello = await _greeting(connection)
                outbox = Outbox(connection)
                caller = Caller(
                    outbox,
                    hello,
                    has_audio=mode == "audio",
                    microphone=microphone,
                    buffer_s=buffer_s,
                )
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(outbox.run)
                    nursery.start_soon(caller.listen, connection)
                    if mode == "audio":
                        nursery.start_soon(caller.run_microphone)
                    nursery.start_soon(caller.run_reports)
                    nursery.start_soon(caller.run_pings)
                    # The line outlives the owner's cancellation, so that a goodbye can be said.
                    scope.shield = True
                    task_status.started(caller)
                    await caller.ended.wait()
                    nursery.cancel_scope.cancel()
    except InvalidStatus as refused:
        body = bytes(refused.response.body).decode(errors="replace").strip()
        raise ConnectionError(
            f"the server refused the call with status {refused.response.status_code}: {body}"
        ) from refused
    except InvalidHandshake as failed:
        raise ConnectionError(f"no call: {failed}") from failed


async def _greeting(connection: SafeClient) -> Hello:
    try:
        message = decode_server(await connection.recv())
    except ConnectionClosed as closed:
        raise ConnectionError("the server closed the call before its hello") from closed
    if not isinstance(message, Hello):
        raise ConnectionError(f"the server said {message!r} before its hello")
    return message


def _call_url(url: str, mode: str) -> str:
    parts = urlsplit(url)
    scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
    if scheme not in ("ws", "wss"):
        raise ValueError(f"url: {url!r} starts with neither ws:// nor http:// (or wss, https)")
    path = parts.path if parts.path.strip("/") else "/ws"
    query = "&".join(part for part in (parts.query, urlencode({"mode": mode})) if part)
    return urlunsplit((scheme, parts.netloc, path, query, ""))
