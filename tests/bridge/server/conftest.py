"""A server over memory streams, so that whole calls run in virtual time."""

import functools
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from bargein import App, Call
from bargein.client import Caller, open_caller
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
    async def call(self, *, redials: bool = False, **options: Any) -> AsyncIterator[Caller]:
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
        async with open_server(app, listeners=[listener], **options) as server:  # type: ignore[list-item]
            yield Place(server, listener)

    return functools.partial(open_place)
