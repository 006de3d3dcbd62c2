"""The server over real loopback sockets: what memory streams cannot show."""

import json
import signal
import socket
import struct
import subprocess
import sys
import urllib.request
from functools import partial
from pathlib import Path

import pytest
import trio
from websockets.trio.client import connect

from bridge import App, Call
from bridge.client import Clear, Spoken, State, Transcript, open_caller
from bridge.events import AgentResponse, UserStartedSpeaking, UserTranscriptionReceived
from bridge.server import Limits, open_server, serve
from bridge.server._handle_messages import VerbReceipt

AGENT = """
import trio
from bridge import App, Call
from bridge.events import AgentResponse, UserTranscriptionReceived


async def answer(call: Call) -> None:
    agent = call.bridge(name="echo")
    agent.on(UserTranscriptionReceived).map(
        lambda m: AgentResponse(content=m.event.content)
    ).broadcast()


async def stuck(call: Call) -> None:
    with trio.CancelScope(shield=True):
        await trio.sleep_forever()


app = App(answer)
"""


async def echo(call: Call) -> None:
    agent = call.bridge(name="echo")
    agent.on(UserTranscriptionReceived).map(
        lambda m: AgentResponse(content=m.event.content)
    ).broadcast()


def test_serve_gives_its_port_and_stops_when_cancelled():
    """As a service of a nursery it starts with the bound port and ends by cancellation."""

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            port = await nursery.start(partial(serve, App(echo), port=0))
            async with open_caller(f"http://127.0.0.1:{port}", mode="text") as caller:
                caller.write("hi")
                await caller.wait_for(Transcript, lambda m: m.role == "agent")
            nursery.cancel_scope.cancel()
        with pytest.raises(OSError, match="all attempts"):
            await trio.open_tcp_stream("127.0.0.1", port)

    trio.run(main)


async def test_a_port_in_use_is_an_os_error():
    """Two servers cannot have one port, and the second says so before it loads anything."""
    async with open_server(App(echo), port=0) as server:
        with pytest.raises(OSError, match="in use"):
            async with open_server(App(echo), port=server.port):
                pass


async def test_a_pause_over_a_real_line_loses_nothing(tone_speech):
    """Paused in mid-sentence and resumed, every sample is heard once, and nothing in between."""
    app = App(echo, speech=tone_speech)
    async with open_server(app, port=0) as server, open_caller(server.url) as caller:
        with trio.fail_after(30):
            caller.write("a sentence of some length")
            await caller.wait_for(Spoken)
            caller.control("pause")
            receipt = await caller.wait_for(VerbReceipt)
            assert receipt.message.accepted
            paused = await caller.wait_for(State, lambda m: m.state == "paused")
            played_ms = caller.played_ms(1)
            await trio.sleep(0.5)
            assert caller.played_ms(1) == played_ms
            caller.control("resume")
            await caller.wait_for(State, lambda m: m.state == "idle", after=paused.number)
        first, second = caller.heard
        samples = [*memoryview(bytes(first.pcm + second.pcm)).cast("h")]
        assert samples == [1 + n % 30_000 for n in range(25 * 60 * 24)]
        assert second.at_s - first.at_s - len(first.pcm) / 48_000 >= 0.5


async def test_a_client_that_vanishes_ends_its_call_and_nothing_else():
    """A connection that is reset ends its own call; the other goes on."""
    async with (
        open_server(App(echo), port=0) as server,
        open_caller(server.url, mode="text") as other,
    ):
        url = f"ws://127.0.0.1:{server.port}/ws?mode=text"
        async with connect(url, proxy=None, compression=None) as doomed:
            await doomed.recv()
            assert server.calls == 2
            raw = doomed.stream.socket
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            await trio.aclose_forcefully(doomed.stream)
        with trio.fail_after(10):
            while server.calls > 1:  # noqa: ASYNC110  # a server tells nobody of its calls
                await trio.sleep(0.01)
        assert server.metrics.calls["disconnected"] == 1
        other.write("still here")
        with trio.fail_after(10):
            await other.wait_for(Transcript, lambda m: m.role == "agent")


async def test_a_reader_that_stops_reading_is_let_go():
    """A client that takes nothing more is disconnected after the limit; others are not slowed."""

    async def flood(call: Call) -> None:
        agent = call.bridge(name="flood")
        agent.on(UserTranscriptionReceived).map(
            lambda m: AgentResponse(content="x" * 50_000)
        ).broadcast()

    limits = Limits(stall_s=0.5, close_s=0.5)
    async with open_server(App(flood), port=0, limits=limits) as server:
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect(("127.0.0.1", server.port))
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(raw))
        request = (
            "GET /ws?mode=text HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        await stream.send_all(request.encode())
        text = json.dumps({"type": "text", "text": "more"}).encode()
        frame = bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text
        for _ in range(18):  # 900 kB and their echoes: below the bound, above what sockets hold
            await stream.send_all(frame)
            await trio.sleep(0.005)
        async with open_caller(server.url, mode="text") as other:
            other.write("hi")
            with trio.fail_after(5):
                await other.wait_for(Transcript, lambda m: m.role == "agent")
            with trio.fail_after(20):
                while server.calls > 1:  # noqa: ASYNC110  # a server tells nobody of its calls
                    await trio.sleep(0.05)
        assert server.metrics.calls["disconnected"] == 1
        await stream.aclose()


async def test_a_slow_client_cannot_hold_the_handshake():
    """A connection that sends half a request is closed at the limit."""
    async with open_server(App(echo), port=0, limits=Limits(handshake_s=0.3)) as server:
        stream = await trio.open_tcp_stream("127.0.0.1", server.port)
        await stream.send_all(b"GET /ws HTTP/1.1\r\nHost: lo")
        with trio.fail_after(10):
            assert await stream.receive_some() == b""
        await stream.aclose()


async def test_a_clear_is_on_the_wire_within_milliseconds(tone_speech):
    """From the caller's word to the clear at the caller takes less than 50 ms on loopback."""

    async def answer(call: Call) -> None:
        agent = call.bridge(name="teller")

        async def tell(message):
            yield AgentResponse(content="a" * 200)

        agent.on(UserTranscriptionReceived, content="go").interrupt_on(UserStartedSpeaking).stream(
            tell
        ).broadcast()

    async with (
        open_server(App(answer, speech=tone_speech), port=0) as server,
        open_caller(server.url) as caller,
    ):
        took = []
        for _ in range(5):
            caller.write("go")
            await trio.sleep(0.3)
            before = trio.current_time()
            after = caller.received[-1].number
            caller.write("stop it")
            with trio.fail_after(5):
                cleared = await caller.wait_for(Clear, after=after)
            took.append(cleared.at_s - before)
        assert sorted(took)[2] < 0.05, took


def test_the_page_over_a_real_connection():
    """An ordinary HTTP client gets the page."""

    async def main() -> None:
        async with open_server(App(echo), port=0) as server:

            def fetch() -> tuple[int, bytes]:
                opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
                with opener.open(server.url, timeout=10) as response:
                    return response.status, response.read()

            status, body = await trio.to_thread.run_sync(fetch)
            assert status == 200
            assert b"<html" in body

    trio.run(main)


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """A file with an agent."""
    path = tmp_path / "an_agent.py"
    path.write_text(AGENT)
    return path


def start(target: str) -> tuple[subprocess.Popen[str], str]:
    """Start a server as its users do, and return it with its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bridge", "serve", target, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert "http://" in line, process.stderr.read() if process.stderr else ""
    return process, line.split()[-1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_the_server(agent, number):
    """The caller is told of the shutdown, the connection closes, and the exit code is 0."""
    process, url = start(f"{agent}:app")

    async def main() -> str | None:
        async with open_caller(url, mode="text") as caller:
            process.send_signal(number)
            with trio.fail_after(20):
                await caller.ended.wait()
            return caller.reason

    try:
        assert trio.run(main) == "shutdown"
        _out, err = process.communicate(timeout=20)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    assert "Traceback" not in err
    assert '"reason": "shutdown"' in err


def test_the_second_signal_does_not_wait(agent):
    """A call that swallows its end holds the drain up until the second signal, not longer."""
    process, url = start(f"{agent}:app")

    async def main() -> None:
        async with open_caller(url, mode="text") as caller:
            stalled = await trio.open_tcp_stream("127.0.0.1", int(url.split(":")[-1].strip("/")))
            # Half a request keeps the server waiting for its handshake: 10 s, as long as the drain.
            await stalled.send_all(b"GET / HTTP/1.1\r\n")
            await trio.sleep(0.2)
            process.send_signal(signal.SIGTERM)
            with trio.fail_after(20):
                await caller.ended.wait()
            before = trio.current_time()
            await trio.sleep(0.3)
            assert process.poll() is None
            process.send_signal(signal.SIGTERM)
            with trio.fail_after(5):
                await trio.to_thread.run_sync(process.wait)
            assert trio.current_time() - before < 5
            await stalled.aclose()

    try:
        trio.run(main)
        _, err = process.communicate(timeout=20)
    finally:
        process.kill()
        process.communicate()
    assert "stopping_by_force" in err
    assert "Traceback" not in err
