"""A server over memory streams, so that whole calls run in virtual time."""

import functools
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from bargein import App, Call, Message
from bargein.client import Caller, open_caller
from bargein.events import AgentAudio, AgentAudioComplete, AgentResponse, AgentTextComplete
from bargein.server import Server, open_server

MS_PER_CHAR = 60


class _MemorySocket:
    """Stands for the socket of a listener; `public` gives it an address that others can reach."""

    def __init__(self, *, public: bool) -> None:
        self.family = socket.AF_INET if public else socket.AF_UNIX

    def getsockname(self) -> Any:
        return ("203.0.113.7", 80) if self.family == socket.AF_INET else "memory"


class MemoryListener(trio.abc.Listener[trio.testing.MemorySendStream]):
    """Accepts connections that `dial` makes."""

    def __init__(self, *, public: bool = False) -> None:
        self._send, self._receive = trio.open_memory_channel[Any](100)
        self.socket = _MemorySocket(public=public)
        self.lines: list[tuple[Any, Any]] = []

    async def accept(self) -> Any:
        return await self._receive.receive()

    async def aclose(self) -> None:
        self._receive.close()
        self._send.close()
        await trio.lowlevel.checkpoint()

    async def dial(self) -> Any:
        mine, yours = trio.testing.memory_stream_pair()
        await self._send.send(yours)
        self.lines.append((mine, yours))
        return mine


class ToneSpeech:
    """Says each character as 60 ms of rising samples, so that heard audio can be told apart."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        yield

    def attach(self, call: Call) -> None:
        def say(message: Message) -> AgentAudio:
            utterance = call.speaking.utterance_of(message)
            assert utterance is not None
            text = message.event.content
            samples = len(text) * MS_PER_CHAR * 24
            pcm = struct.pack(f"<{samples}h", *(1 + n % 30_000 for n in range(samples)))
            return AgentAudio(pcm, 24_000, text, utterance=utterance.number)

        def finish(message: Message) -> AgentAudioComplete:
            return AgentAudioComplete(utterance=message.event.utterance)

        voice = call.bridge(name="voice", is_agent=False)
        voice.on(AgentResponse).map(say).broadcast()
        voice.on(AgentTextComplete).map(finish).broadcast()


@pytest.fixture
def listen() -> type[MemoryListener]:
    """A listener in memory, which tests dial."""
    return MemoryListener


@pytest.fixture
def tone_speech() -> ToneSpeech:
    """A voice for apps over real sockets."""
    return ToneSpeech()


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
        speech = ToneSpeech() if voice else None
        app = App(answer, **{"name": "tester", "speech": speech, **(app or {})})
        async with open_server(app, listeners=[listener], **options) as server:  # type: ignore[list-item]
            yield Place(server, listener)

    return functools.partial(open_place)
