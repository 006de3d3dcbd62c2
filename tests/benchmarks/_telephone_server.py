"""Servers of telephone calls, each in its own process: ours, and an echo on the bare library.

``ours`` answers Twilio's Media Streams with a voice that never ends; ``echo`` sends each message
back.  For each line on standard input they print a measurement, as ``_talking_server`` does.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio
from websockets.datastructures import Headers
from websockets.frames import Frame
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from bargein import App, Call, Message
from bargein.events import AgentAudio, AgentResponse, CallStarted, UserAudio
from bargein.phone import TwilioMedia
from bargein.server import Limits, open_server

from ._cpu_speed import CPUSpeed
from ._talking_server import report_usage

TOKEN = "12345"
WORD = "on and on and "
WORD_S = 1.0


class LineVoice:
    """Says each text in a second of sound at the line's rate, as one piece."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Do nothing."""
        yield

    def attach(self, call: Call) -> None:
        """Say what the agents of a call write, and handle each frame of the caller."""
        rate_hz = call.output_rate_hz

        def say(message: Message) -> AgentAudio | None:
            utterance = call.answers.utterance_of(message)
            if utterance is None:
                return None
            pcm = bytes(2 * round(WORD_S * rate_hz))
            return AgentAudio(pcm, rate_hz, message.event.content, utterance=utterance.number)

        voice = call.bridge(name="voice", is_agent=False)
        voice.on(AgentResponse).map(say).broadcast()
        voice.on(UserAudio).map(lambda message: None)


async def _talk(message: Message) -> AsyncIterator[AgentResponse]:
    while True:
        yield AgentResponse(content=WORD)
        await trio.sleep(WORD_S)


async def answer(call: Call) -> None:
    """Talk for ever."""
    call.bridge(name="agent").on(CallStarted).stream(_talk).broadcast()


async def serve_ours(told: Callable[[int], None]) -> None:
    """Serve the app by its telephone wire."""
    wire = TwilioMedia(auth_token=TOKEN, calls_per_number=None)
    app = App(answer, speech=LineVoice())
    async with open_server(app, port=0, wires=(wire,), limits=Limits(max_calls=1000)) as server:
        told(server.port)
        await trio.sleep_forever()


async def serve_echo(told: Callable[[int], None]) -> None:
    """Send each message back, by the same library on trio."""

    async def handle(stream: trio.SocketStream) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += await stream.receive_some(4096)
        headers = [line.partition(": ") for line in head.decode().split("\r\n")[1:-2]]
        request = Request("/", Headers([(name, value) for name, _, value in headers]))
        await stream.send_all(ServerProtocol().accept(request).serialize())
        protocol = ServerProtocol(state=State.OPEN)
        try:
            while data := await stream.receive_some(16_384):
                protocol.receive_data(data)
                for frame in protocol.events_received():
                    if isinstance(frame, Frame) and frame.opcode == 1:
                        protocol.send_text(bytes(frame.data))
                await stream.send_all(b"".join(protocol.data_to_send()))
        except trio.BrokenResourceError:
            pass

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    told(listeners[0].socket.getsockname()[1])
    await trio.serve_listeners(handle, listeners)


async def _main(side: str) -> None:
    def told(port: int) -> None:
        print(port, flush=True)

    async with trio.open_nursery() as nursery:
        speed = CPUSpeed()
        nursery.start_soon(speed.sample)
        nursery.start_soon(report_usage, speed)
        nursery.start_soon(serve_ours if side == "ours" else serve_echo, told)


if __name__ == "__main__":
    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    trio.run(_main, sys.argv[1])
