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

from bridge import App, Call, Message
from bridge.client import Caller, open_caller
from bridge.events import AgentAudio, AgentAudioComplete, AgentResponse, AgentTextComplete
from bridge.server import Server, open_server

MS_PER_CHAR = 60


class _MemorySocket:
    family = socket.AF_UNIX

    def getsockname(self) -> str:
        return "memory"


class MemoryListener(trio.abc.Listener[trio.testing.MemorySendStream]):
    """Accepts connections that `dial` makes."""

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[Any](100)
        self.socket = _MemorySocket()

    async def accept(self) -> Any:
        return await self._receive.receive()

    async def aclose(self) -> None:
        self._receive.close()
        self._send.close()
        await trio.lowlevel.checkpoint()

    async def dial(self) -> Any:
        mine, yours = trio.testing.memory_stream_pair()
        await self._send.send(yours)
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
def tone_speech() -> ToneSpeech:
    """A voice for apps over real sockets."""
    return ToneSpeech()


class Place:
    """A server in memory and the way to call it."""

    def __init__(self, server: Server, listener: MemoryListener) -> None:
        self.server = server
        self.listener = listener

    @asynccontextmanager
    async def call(self, **options: Any) -> AsyncIterator[Caller]:
        stream = await self.listener.dial()
        async with open_caller("ws://localhost/ws", stream=stream, **options) as caller:
            yield caller

    async def request(self, text: str) -> str:
        """Send an HTTP request and return the whole answer."""
        stream = await self.listener.dial()
        await stream.send_all(text.replace("\n", "\r\n").encode())
        answer = b""
        async for chunk in stream:
            answer += chunk
        await stream.aclose()
        return answer.decode()


Serving = Callable[..., AbstractAsyncContextManager[Place]]


@pytest.fixture
def serving() -> Serving:
    """Open a server in memory for an `answer` function (with a voice if `voice=True`)."""

    @asynccontextmanager
    async def open_place(
        answer: Callable[[Call], Any], *, voice: bool = False, **options: Any
    ) -> AsyncIterator[Place]:
        listener = MemoryListener()
        app = App(answer, speech=ToneSpeech() if voice else None, name="tester")
        async with open_server(app, listeners=[listener], **options) as server:  # type: ignore[list-item]
            yield Place(server, listener)

    return functools.partial(open_place)
