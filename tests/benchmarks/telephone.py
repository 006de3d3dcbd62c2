"""Load 19: the cost of a telephone call whose sound travels, both ways, over a real socket.

The baseline does what the wire asks for, on the same library on trio: 50 messages a second are
parsed and decoded to PCM, and sound is coded and sent in pieces of 100 ms, each with its mark.
Ours resamples and publishes the caller's sound besides, and follows the agent's.  The two run one
after the other in processes of their own, and the ratio is one of loops, as in ``sockets``.
"""

from __future__ import annotations

import base64
import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from urllib.parse import urlsplit
from xml.etree import ElementTree

import trio

from bargein.fakes import FakeTwilio

from ._measure import Row, Size
from ._process import ROOT
from ._telephone_server import TOKEN
from .sockets import OPENING_S, masked_text

BOUND = 1.3
SETTLE_S = 4.0
"""How long to wait before measuring, in seconds, until calls are open and talk."""

FORM = {"From": "+15550001", "To": "+15550100"}
PAYLOAD = base64.b64encode(bytes([0x80 + n % 0x40 for n in range(160)])).decode()


@dataclass(frozen=True)
class LineFigure:
    """What one call costs."""

    cpu_ms: float
    loops: float
    memory_kb: float


class _Line:
    """One caller, as cheap as possible, who sends marks back when their sound was played."""

    def __init__(self, port: int, number: int, side: str) -> None:
        self._port = port
        self._number = number
        self._side = side
        self._plays_until_s = 0.0
        self._marks: list[tuple[float, dict[str, object]]] = []

    async def run(self) -> None:
        path, token, headers = "/", "", {}
        if self._side == "ours":
            path, token, headers = await self._announced()
        stream = await trio.open_tcp_stream("127.0.0.1", self._port)
        head = {"Host": "localhost", "Upgrade": "websocket", "Connection": "Upgrade"}
        head |= {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
        lines = "".join(f"{name}: {value}\r\n" for name, value in {**head, **headers}.items())
        await stream.send_all(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
        started = {"streamSid": "MZ1", "callSid": f"CA{self._number}"}
        start = started | {"customParameters": {"token": token}}
        await stream.send_all(masked_text({"event": "start", **started, "start": start}))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._speak, stream)
            await self._listen(stream)

    async def _announced(self) -> tuple[str, str, dict[str, str]]:
        async def dial() -> trio.abc.Stream:
            return await trio.open_tcp_stream("127.0.0.1", self._port)

        carrier = FakeTwilio(auth_token=TOKEN)
        form = FORM | {"CallSid": f"CA{self._number}"}
        _, body = await carrier.post(dial, "https://localhost/twilio/voice", form)
        found = ElementTree.fromstring(body).find("Connect/Stream")
        assert found is not None
        url, parameter = found.get("url", ""), found.find("Parameter")
        assert parameter is not None
        return urlsplit(url).path, parameter.get("value", ""), carrier.sign(url)

    async def _speak(self, stream: trio.SocketStream) -> None:
        at_s, chunk = trio.current_time(), 0
        while True:
            chunk += 1
            media = {"track": "inbound", "chunk": str(chunk), "payload": PAYLOAD}
            data = masked_text({"event": "media", "streamSid": "MZ1", "media": media})
            while self._marks and self._marks[0][0] <= at_s:
                data += masked_text(self._marks.pop(0)[1])
            await stream.send_all(data)
            at_s += 0.02
            await trio.sleep_until(at_s)

    async def _listen(self, stream: trio.SocketStream) -> None:
        buffer = bytearray()
        while b"\r\n\r\n" not in buffer:
            buffer += await stream.receive_some(4096)
        del buffer[: buffer.index(b"\r\n\r\n") + 4]
        while True:
            while len(buffer) >= 4:
                length, at = buffer[1] & 127, 2
                if length == 126:
                    length, at = int.from_bytes(buffer[2:4], "big"), 4
                if len(buffer) < at + length:
                    break
                self._take(bytes(buffer[at : at + length]))
                del buffer[: at + length]
            buffer += await stream.receive_some(65_536)

    def _take(self, data: bytes) -> None:
        now_s = trio.current_time()
        if data.startswith(b'{"event":"media"'):
            played_s = (len(data) - 70) * 3 / 4 / 8000
            self._plays_until_s = max(now_s, self._plays_until_s) + played_s
        elif data.startswith(b'{"event":"mark"'):
            self._marks.append((self._plays_until_s, json.loads(data)))


def measure(side: str, calls: int, seconds: float) -> LineFigure:
    """Measure the calls of one server."""
    settle_s = SETTLE_S if seconds >= 1 else 0.5  # a look judges nothing
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks._telephone_server", side],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdin is not None
    port = int(process.stdout.readline())

    def usage() -> dict[str, float]:
        process.stdin.write("?\n")  # type: ignore[union-attr]  # it is a pipe
        process.stdin.flush()  # type: ignore[union-attr]
        found: dict[str, float] = json.loads(process.stdout.readline())  # type: ignore[union-attr]
        return found

    async def main() -> LineFigure:
        async with trio.open_nursery() as nursery:
            resident: list[float] = []
            for half in range(2):
                for number in range(calls // 2):
                    line = _Line(port, half * calls + number, side)
                    nursery.start_soon(line.run)
                    await trio.sleep(OPENING_S)
                await trio.sleep(settle_s)
                resident.append(usage()["resident"])
            began_s = trio.current_time()
            await trio.sleep(seconds)
            found = usage()
            took_s = trio.current_time() - began_s
            nursery.cancel_scope.cancel()
        opened = calls // 2 * 2
        return LineFigure(
            cpu_ms=1000 * found["cpu_s"] / took_s / opened,
            loops=found["cpu_s"] / found["loop_s"] / took_s / opened,
            memory_kb=(resident[1] - resident[0]) / (opened // 2) / 1000,
        )

    try:
        return trio.run(main)
    finally:
        process.kill()
        process.wait()


def rows(size: Size) -> list[Row]:
    """Run the load."""
    return [row for calls in size.socket_calls[:1] for row in _rows(max(calls, 2), size)]


def _rows(calls: int, size: Size) -> list[Row]:
    rounds = [
        (measure("ours", calls, size.socket_s), measure("bare", calls, size.socket_s))
        for _ in range(size.socket_rounds)
    ]
    ours = statistics.median(one.cpu_ms for one, _ in rounds)
    memory_kb = statistics.median(one.memory_kb for one, _ in rounds)
    cpu = Row(
        name=f"CPU of a telephone call with sound, {calls} calls",
        unit="ms/s",
        bare=statistics.median(bare.cpu_ms for _, bare in rounds),
        bare_p99=None,
        ours=ours,
        ours_p99=None,
        value=statistics.median(one.loops / bare.loops for one, bare in rounds),
        bound=BOUND,
        note=f"bare does what the wire asks for; {1000 / ours:.0f} calls a core",
    )
    memory = Row(
        name=f"memory of a telephone call with sound, {calls} calls",
        unit="kB",
        bare=None,
        bare_p99=None,
        ours=memory_kb,
        ours_p99=None,
        value=memory_kb,
        bound=None,
        note="resident",
    )
    return [cpu, memory]
