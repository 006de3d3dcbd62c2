"""Servers of telephone calls, each in its own process: ours, and one on the bare library.

``ours`` answers Twilio's Media Streams with a voice that never ends; ``bare`` does only what the
wire asks for: it decodes each message, and talks in pieces of the same length, with marks.  For
each line on standard input they print a measurement, as ``_talking_server`` does.
"""

from __future__ import annotations

import json
import sys
from array import array
from base64 import b64decode, b64encode
from collections import deque
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
PIECE_SAMPLES = 800
"""100 ms at the line's rate, as ours sends; each piece has its mark."""


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


async def serve_bare(told: Callable[[int], None]) -> None:
    """Do what the wire itself asks for, by the same library on trio, and nothing of ours."""
    to_high, to_low, to_code = _mu_law_tables()

    async def handle(stream: trio.SocketStream) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += await stream.receive_some(4096)
        headers = [line.partition(": ") for line in head.decode().split("\r\n")[1:-2]]
        request = Request("/", Headers([(name, value) for name, _, value in headers]))
        await stream.send_all(ServerProtocol().accept(request).serialize())
        protocol = ServerProtocol(state=State.OPEN)
        heard: deque[bytes] = deque(maxlen=50)
        unplayed: set[str] = set()
        sending = trio.Lock()

        async def flush() -> None:
            async with sending:
                await stream.send_all(b"".join(protocol.data_to_send()))

        async def talk() -> None:
            silence, at_s, number = array("h", bytes(2 * PIECE_SAMPLES)), trio.current_time(), 0
            while True:
                number += 1
                payload = b64encode(bytes(map(to_code.__getitem__, silence))).decode()
                media = {"event": "media", "streamSid": "MZ1", "media": {"payload": payload}}
                protocol.send_text(json.dumps(media, separators=(",", ":")).encode())
                mark = {"event": "mark", "streamSid": "MZ1", "mark": {"name": str(number)}}
                protocol.send_text(json.dumps(mark, separators=(",", ":")).encode())
                unplayed.add(str(number))
                await flush()
                at_s += PIECE_SAMPLES / 8000
                await trio.sleep_until(at_s)

        def take(data: bytes) -> None:
            message = json.loads(data)
            if message["event"] == "media":
                coded = b64decode(message["media"]["payload"])
                pcm = bytearray(2 * len(coded))
                pcm[::2], pcm[1::2] = coded.translate(to_low), coded.translate(to_high)
                heard.append(bytes(pcm))
            elif message["event"] == "mark":
                unplayed.discard(message["mark"]["name"])

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(talk)
                while data := await stream.receive_some(16_384):
                    protocol.receive_data(data)
                    for frame in protocol.events_received():
                        if isinstance(frame, Frame) and frame.opcode == 1:
                            take(bytes(frame.data))
                nursery.cancel_scope.cancel()
        except* trio.BrokenResourceError:
            pass

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    told(listeners[0].socket.getsockname()[1])
    await trio.serve_listeners(handle, listeners)


def _mu_law_tables() -> tuple[bytes, bytes, bytes]:
    """Return the higher and the lower byte of each code's sample, and the code of each sample."""
    sizes = [(((~n & 0x0F) << 3) + 0x84 << ((~n & 0x70) >> 4)) - 0x84 for n in range(256)]
    pcm = array("h", [size if n & 0x80 else -size for n, size in enumerate(sizes)]).tobytes()
    codes = bytearray()
    for sample in [*range(2**15), *range(-(2**15), 0)]:
        biased = min(sample if sample >= 0 else ~sample, 32635) + 0x84
        segment = biased.bit_length() - 8
        code = ~(segment << 4 | biased >> segment + 3 & 0x0F) & 0x7F
        codes.append(code | 0x80 if sample >= 0 else code)
    return pcm[1::2], pcm[::2], bytes(codes)


async def _main(side: str) -> None:
    def told(port: int) -> None:
        print(port, flush=True)

    async with trio.open_nursery() as nursery:
        speed = CPUSpeed()
        nursery.start_soon(speed.sample)
        nursery.start_soon(report_usage, speed)
        nursery.start_soon(serve_ours if side == "ours" else serve_bare, told)


if __name__ == "__main__":
    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    trio.run(_main, sys.argv[1])
