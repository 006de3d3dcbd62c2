"""A real server behind a line that can be cut, for the page's tests of reconnecting.

Run as a program it prints its ports as JSON, then obeys lines on its standard input and answers
each with one line of JSON, until that is closed:

- ``cut``: resets every connection of the line; ``down``: that, and lets none in; ``up``: lets in;
- ``freeze``: has nothing that is open now arrive any more, in both directions;
- ``tell``: what the server knows of its calls; ``end``: has the agent hang up in all of them.

Whatever the caller types has the agent tell a story; its voice is a tone, 60 ms a character.
"""

from __future__ import annotations

import array
import functools
import json
import math
import socket
import struct
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import structlog
import trio

from bargein import App, Call, Message
from bargein.conversations import SqliteConversations
from bargein.events import (
    AgentAudio,
    AgentAudioComplete,
    AgentResponse,
    AgentTextComplete,
    EndCall,
    UserStartedSpeaking,
    UserTranscriptionReceived,
)
from bargein.server import Limits, open_server

RATE_HZ = 24_000
MS_PER_CHAR = 60
STORY = "Once upon a time there was a fox. It lived in a wood and it talked too much, all day long."


class Tone:
    """Says each character as 60 ms of a tone."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        yield

    def attach(self, call: Call) -> None:
        def say(message: Message) -> AgentAudio | None:
            utterance = call.answers.utterance_of(message)
            if utterance is None:
                return None
            text = message.event.content
            samples = len(text) * MS_PER_CHAR * RATE_HZ // 1000
            step = 2 * math.pi * 400 / RATE_HZ
            pcm = array.array("h", (int(6000 * math.sin(step * n)) for n in range(samples)))
            return AgentAudio(pcm.tobytes(), RATE_HZ, text, utterance=utterance.number)

        voice = call.bridge(name="voice", is_agent=False)
        voice.on(AgentResponse).map(say).broadcast()
        voice.on(AgentTextComplete).map(
            lambda m: AgentAudioComplete(utterance=m.event.utterance)
        ).broadcast()


class Line:
    """Forwards TCP connections to a port, as long as it is told to."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.is_down = False
        self._streams: set[trio.SocketStream] = set()
        self._moving = trio.Event()
        self._moving.set()
        self._frozen: set[trio.SocketStream] = set()

    async def carry(self, near: trio.SocketStream) -> None:
        if self.is_down:
            reset(near)
            await trio.aclose_forcefully(near)
            return
        far = await trio.open_tcp_stream("127.0.0.1", self.port)
        self._streams |= {near, far}
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._pump, near, far, nursery.cancel_scope)
                nursery.start_soon(self._pump, far, near, nursery.cancel_scope)
        finally:
            self._streams -= {near, far}
            for stream in (near, far):
                await trio.aclose_forcefully(stream)

    async def _pump(
        self, source: trio.SocketStream, sink: trio.SocketStream, scope: trio.CancelScope
    ) -> None:
        try:
            async for data in source:
                if source in self._frozen:
                    await trio.sleep_forever()
                await sink.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        scope.cancel()

    async def cut(self) -> None:
        streams = tuple(self._streams)
        for stream in streams:  # all before the first is closed: its end closes the other one
            reset(stream)
        for stream in streams:
            await trio.aclose_forcefully(stream)

    def freeze(self) -> None:
        self._frozen |= self._streams


def reset(stream: trio.SocketStream) -> None:
    """Have closing a connection reset it, as a network does that is gone."""
    linger = struct.pack("ii", 1, 0)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


class Storyteller:
    """Tells the story to whoever types something, and keeps its calls."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    async def answer(self, call: Call) -> None:
        self.calls.append(call)
        agent = call.bridge(name="storyteller")

        async def tell(message: Message) -> AsyncIterator[AgentResponse]:
            for sentence in STORY.split(". "):
                yield AgentResponse(content=sentence + (". " if sentence in STORY[:40] else ""))

        agent.on(UserTranscriptionReceived).interrupt_on(UserStartedSpeaking).stream(
            tell
        ).broadcast()

    def tell(self) -> list[dict[str, Any]]:
        return [
            {
                "entries": call.history.as_json(),
                "is_over": call.ended.is_set(),
                "reason": call.end_reason,
                "conversation": call.conversation,
            }
            for call in self.calls
        ]


async def main() -> None:
    """Serves until standard input is closed."""
    storyteller = Storyteller()
    speech = Tone()
    async with AsyncExitStack() as stack:
        conversations = SqliteConversations(
            Path(stack.enter_context(tempfile.TemporaryDirectory())) / "t.db"
        )
        app = App(
            storyteller.answer,
            speech=speech,
            conversations=conversations,
            callers_name_conversations=True,
        )
        limits = Limits(watch="words")
        server = await stack.enter_async_context(open_server(app, port=0, limits=limits))
        small = await stack.enter_async_context(
            open_server(app, port=0, limits=Limits(max_calls=1, resume_s=2.0))
        )
        line, brief = Line(server.port), Line(small.port)
        nursery = await stack.enter_async_context(trio.open_nursery())
        ports = []
        for each in (line, brief):
            start = functools.partial(trio.serve_tcp, each.carry, 0, host="127.0.0.1")
            listeners = await nursery.start(start)
            ports.append(listeners[0].socket.getsockname()[1])
        told = {"story": STORY, "story_ms": len(STORY) * MS_PER_CHAR}
        say({"line": ports[0], "brief": ports[1], **told})
        await obey(storyteller, (line, brief), server)
        nursery.cancel_scope.cancel()


async def obey(storyteller: Storyteller, lines: tuple[Line, ...], server: Any) -> None:
    """Does what standard input says."""
    commands = trio.wrap_file(sys.stdin)
    async for command in commands:
        word = command.strip()
        answer: Any = None
        if word in ("down", "up"):
            for line in lines:
                line.is_down = word == "down"
        if word in ("down", "cut"):
            for line in lines:
                await line.cut()
        if word == "freeze":
            for line in lines:
                line.freeze()
        if word == "end":
            for call in storyteller.calls:
                call.publish(EndCall(), source="storyteller")
        if word == "tell":
            metrics = server.metrics
            answer = {
                "calls": storyteller.tell(),
                "reconnects": metrics.reconnects,
                "calls_waiting": metrics.calls_waiting,
            }
        say(answer)


def say(answer: Any) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(30),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    trio.run(main)
