"""Attacks on a server, each in a process of its own: its memory is that of nothing else.

    python -m tests.bridge.server.attacks empty_fragments

It prints how many tasks are left behind, and how many bytes each round adds to the process.
"""

from __future__ import annotations

import gc
import json
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

import trio

from bargein import App, Call
from bargein.client import CallOverError, Transcript, open_caller
from bargein.events import AgentResponse, UserTranscriptionReceived
from bargein.server import Limits, Server, open_server
from tests.benchmarks._process import logs_to_nowhere, resident_bytes
from tests.living import living_tasks

ATTACKERS = 40
"""Connections of one attack; before it begins, as many have been opened and closed in peace."""

ROUNDS = 2
"""How often it is attacked: what a connection leaves behind for ever, each round leaves again."""

PATIENCE_S = 60.0
"""For what must happen in the end; a machine that is busy takes its time."""

LIMITS = Limits(close_s=0.5, stall_s=1, resume_s=0.2, silence_s=2, max_calls=200)

Line = trio.SocketStream


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True) -> bytes:
    """Return a frame of a client, masked by zeros."""
    head = bytes([0x80 * fin | opcode])
    if len(payload) < 126:
        head += bytes([0x80 | len(payload)])
    else:
        head += bytes([0x80 | 126]) + struct.pack("!H", len(payload))
    return head + bytes(4) + payload


async def _pings_then_a_reset(line: Line) -> None:
    await line.send_all(frame(9, b"p" * 100) * 3_000)
    reset(line)


async def _empty_frames_then_a_reset(line: Line) -> None:
    await line.send_all(frame(2) * 10_000)
    reset(line)


async def _no_text_and_frames_behind(line: Line) -> None:
    await line.send_all(frame(1, b"\xff") + frame(1, b"x" * 1000) * 1_000)
    await trio.sleep(0.5)


async def _empty_fragments(line: Line) -> None:
    await line.send_all(frame(1, fin=False) + frame(0, fin=False) * 25_000)
    await trio.sleep(0.5)


async def _a_reader_that_stops(line: Line) -> None:
    more = frame(1, b'{"type":"text","text":"' + b"x" * 5_000 + b'"}')
    for _ in range(200):
        await line.send_all(more)


async def _a_message_that_never_ends(line: Line) -> None:
    await line.send_all(frame(2, b"x" * 60_000, fin=False))
    while True:
        await line.send_all(frame(0, b"x" * 60_000, fin=False))
        await trio.sleep(0.05)


async def _a_frame_that_never_ends(line: Line) -> None:
    await line.send_all(bytes([0x82, 0x80 | 127]) + struct.pack("!Q", 200_000) + bytes(4))
    while True:
        await line.send_all(b"x" * 10)
        await trio.sleep(0.05)


async def _silence(line: Line) -> None:
    await trio.sleep(4)


async def _half_a_close(line: Line) -> None:
    await line.send_all(frame(8, b"\x03"))
    await line.send_all(frame(9) * 1000)
    await trio.sleep(0.7)


ATTACKS = {
    how.__name__.strip("_"): how
    for how in (
        _pings_then_a_reset,
        _empty_frames_then_a_reset,
        _no_text_and_frames_behind,
        _empty_fragments,
        _a_reader_that_stops,
        _a_message_that_never_ends,
        _a_frame_that_never_ends,
        _silence,
        _half_a_close,
    )
}


def reset(line: Line) -> None:
    """Tear a connection as a network does, without a goodbye."""
    line.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    line.socket.close()


async def connected(server: Server) -> Line:
    """Open a call with a raw socket whose buffers are small."""
    raw = trio.socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    try:
        await raw.connect(("127.0.0.1", server.port))
        line = trio.SocketStream(raw)
        await line.send_all(
            b"GET /ws?mode=text HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        await line.receive_some()
    except BaseException:
        raw.close()
        raise
    return line


async def attack(server: Server, how: Callable[[Line], Awaitable[None]]) -> None:
    """Attack over one connection, until that is enough or the server has had enough."""
    line = await connected(server)
    try:
        with trio.move_on_after(5):
            await how(line)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    await line.aclose()


async def peace(line: Line) -> None:
    """Say one word and hang up."""
    await line.send_all(frame(1, b'{"type":"text","text":"hi"}'))
    await line.send_all(frame(8, struct.pack("!H", 1000)))
    await line.receive_some()


async def at_rest(server: Server, tasks: int) -> int:
    """Return how many tasks live once no call is open, or the time for that is over."""
    with trio.move_on_after(PATIENCE_S):
        while server.calls or living_tasks() > tasks:  # noqa: ASYNC110  # it tells nobody of them
            await trio.sleep(0.05)
    return living_tasks()


async def is_answered(server: Server) -> None:
    """Call until the agent answers; while the machine is busy a call may fail to open in time."""
    while True:
        with suppress(OSError, CallOverError):
            async with open_caller(server.url, mode="text") as caller:
                caller.write("are you there?")
                await caller.wait_for(Transcript, lambda m: m.role == "agent")
                return


async def echo(call: Call) -> None:
    """Say what was said."""
    agent = call.bridge(name="echo")
    agent.on(UserTranscriptionReceived).map(
        lambda m: AgentResponse(content=m.event.content)
    ).broadcast()


async def rounds(how: Callable[[Line], Awaitable[None]]) -> dict[str, list[int]]:
    """Attack in rounds; return for each the tasks left behind, and the growth in bytes."""
    left, growth = [], []
    async with open_server(App(echo), port=0, limits=LIMITS) as server:
        tasks = living_tasks()
        for one in (peace, how):  # whatever is ever loaded is loaded now
            async with trio.open_nursery() as nursery:
                for _ in range(ATTACKERS):
                    nursery.start_soon(attack, server, one)
            left.append(await at_rest(server, tasks) - tasks)
        for _ in range(ROUNDS):
            gc.collect()
            before = resident_bytes()
            async with trio.open_nursery() as nursery:
                for _ in range(ATTACKERS):
                    nursery.start_soon(attack, server, how)
                with trio.fail_after(PATIENCE_S):
                    await is_answered(server)
            left.append(await at_rest(server, tasks) - tasks)
            gc.collect()
            growth.append(resident_bytes() - before)
    return {"left": left, "growth_bytes": growth}


def main() -> None:
    """Attack as the command line says, and print what came of it."""
    with logs_to_nowhere():
        print(json.dumps(trio.run(rounds, ATTACKS[sys.argv[1]])))


if __name__ == "__main__":
    main()
