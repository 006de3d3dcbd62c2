"""A server over memory streams, so that whole calls run in virtual time."""

import functools
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import pytest
import trio
import trio.testing

from bargein import App, Call
from bargein.client import NetworkCaller, open_caller
from bargein.server import Server, open_server
from tests.memory_listener import MemoryListener
from tests.plain_voice import PlainVoice

MS_PER_CHAR = 60


def rising(text: str) -> bytes:
    """Return 60 ms of rising samples for each character, so that heard audio can be told apart."""
    samples = len(text) * MS_PER_CHAR * 24
    return struct.pack(f"<{samples}h", *(1 + n % 30_000 for n in range(samples)))


@pytest.fixture
def listen() -> type[MemoryListener]:
    """A listener in memory, which tests dial."""
    return MemoryListener


@pytest.fixture
def tone_speech() -> PlainVoice:
    """A voice for apps over real sockets."""
    return PlainVoice(rising)


class Place:
    """A server in memory and the way to call it."""

    def __init__(self, server: Server, listener: MemoryListener) -> None:
        self.server = server
        self.listener = listener
        self.is_down = False
        self.dialled_s: list[float] = []
        self._frozen: list[Any] = []
        self._pumps: dict[Any, Any] = {}

    @asynccontextmanager
    async def call(self, *, redials: bool = False, **options: Any) -> AsyncIterator[NetworkCaller]:
        stream = self.dial if redials else await self.listener.dial()
        async with open_caller("ws://localhost/ws", stream=stream, **options) as caller:
            yield caller

    async def dial(self) -> Any:
        """Open a line, unless the network is down."""
        self.dialled_s.append(trio.current_time())
        if self.is_down:
            await trio.lowlevel.checkpoint()
            raise OSError("the network is down")
        return await self.listener.dial()

    def cut(self, *, down: bool = False) -> None:
        """Cut the newest line; both ends notice at once.  `down`: no other can be opened."""
        self.is_down = down
        for end in self.listener.lines[-1]:
            end.receive_stream.put_eof()

    def freeze(self, *, to_server: bool = True, to_client: bool = True) -> None:
        """Have nothing of the newest line arrive any more; neither end notices."""
        mine, yours = self.listener.lines[-1]
        self._frozen = [mine] * to_server + [yours] * to_client
        for end in self._frozen:
            self._pumps[end] = end.send_stream.send_all_hook
            end.send_stream.send_all_hook = None

    async def thaw(self) -> None:
        """Let arrive what was kept."""
        for end in self._frozen:
            end.send_stream.send_all_hook = self._pumps.pop(end)
            await end.send_stream.send_all_hook()

    async def request(self, text: str) -> str:
        """Send an HTTP request and return the whole answer."""
        stream = await self.listener.dial()
        await stream.send_all(text.replace("\n", "\r\n").encode())
        answer = b""
        async for chunk in stream:
            answer += chunk
        await stream.aclose()
        return answer.decode()


async def _carry(outbox: Any, send: Callable[[str | bytes], Any]) -> None:
    news = trio.Event()

    def wake() -> None:
        news.set()

    outbox.notify(wake)
    while True:
        data = outbox.next()
        if data is not None:
            await send(data)
        elif outbox.is_closed:
            return
        else:
            news = trio.Event()
            await news.wait()


@pytest.fixture
def carry() -> Callable[[Any, Callable[[str | bytes], Any]], Any]:
    """Do with an outbox what a connection does: hand each message on, until it is closed."""
    return _carry


Serving = Callable[..., AbstractAsyncContextManager[Place]]


@pytest.fixture
def serving() -> Serving:
    """Open a server in memory for an `answer` function (with a voice if `voice=True`)."""

    @asynccontextmanager
    async def open_place(
        answer: Callable[[Call], Any], *, voice: bool = False, app: Any = None, **options: Any
    ) -> AsyncIterator[Place]:
        listener = MemoryListener()
        speech = PlainVoice(rising) if voice else None
        app = App(answer, **{"name": "tester", "speech": speech, **(app or {})})
        async with open_server(app, listeners=[listener], **options) as server:
            yield Place(server, listener)

    return functools.partial(open_place)


class Knocked:
    """A connection that has asked for a call."""

    def __init__(self, stream, status):
        self.status = status
        self._stream = stream
        self._read = b""

    async def send(self, data):
        await self._stream.send_all(data)

    async def close_code(self):
        """Read until the server closes; return the code of its close frame."""
        while data := await self._stream.receive_some(4096):
            self._read += data
        return int.from_bytes(self._read.partition(b"\x88")[2][1:3], "big")

    def drop(self):
        """Close the connection without a word."""
        self._stream.socket.close()

    async def hang_up(self):
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await self._stream.send_all(b"\x88\x82\0\0\0\0\x03\xe8")  # close, 1000
        await self._stream.aclose()


@pytest.fixture
def raw_handshake():
    """Ask for a call with headers of one's own."""

    async def knock(port, headers, path="/ws?mode=text"):
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        fields = {
            "Host": "localhost",
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
            **headers,
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        try:
            await stream.send_all(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
            with trio.fail_after(30):
                answer = await stream.receive_some(4096)
        except BaseException:
            stream.socket.close()
            raise
        knocked = Knocked(stream, int(answer.split(b" ")[1]))
        if knocked.status != 101:
            await stream.aclose()
        return knocked

    return knock
