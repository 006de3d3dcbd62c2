"""Servers of one cluster, each a process: one is killed, or stopped, under its calls."""

from __future__ import annotations

import os
import re
import signal
import sys
from contextlib import ExitStack

import pytest
import trio

from bargein.client import open_caller
from tests.bridge.stopping import PATIENCE_S, port_of, program

from .redis_server import redis_server
from .test_killed_workers import AGENT, text_of

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(sys.platform == "win32", reason="signals"),
]

CALLS = 8
WORDS = 40


@pytest.fixture
def servers(tmp_path):
    """Two servers that share a Redis."""
    (tmp_path / "agent.py").write_text(AGENT)
    with ExitStack() as stack:
        redis = stack.enter_context(redis_server(tmp_path))
        options = ("serve", "--port", "0", "--cluster", redis.url)
        yield [stack.enter_context(program(tmp_path, *options)) for _ in range(2)]


@pytest.mark.parametrize(("how", "most_s"), [("SIGKILL", 1.5), ("SIGSTOP", 4.0)])
def test_calls_go_on_at_another_server(servers, how, most_s):
    """No call and no word is lost, and none is said twice; whoever wakes up says nothing more."""
    first, second = servers
    for server in servers:
        server.until('"server_started"')
    ports = [port_of(one.text) for one in servers]
    said, silent_s = {}, []

    async def main():
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                for number in range(CALLS):
                    nursery.start_soon(_count, ports, number, said, silent_s)
                await trio.sleep(1.2)
                os.kill(first.process.pid, signal.Signals[how])
                # A proxy in front finds out, and sends those who come back to the other one.
                ports.reverse()

    trio.run(main)
    second.until(lambda: second.text.count('"call_taken"') == CALLS)
    whole = "begin " + "".join(f"w{number} " for number in range(WORDS))
    assert [said[number] for number in range(CALLS)] == [whole] * CALLS
    print("longest silence, s:", how, round(max(silent_s), 2))
    assert max(silent_s) < most_s + 2.0  # of a busy machine
    if how == "SIGSTOP":
        first.ask(signal.SIGCONT)
        first.until(lambda: first.text.count('"call_over"') == CALLS)
        assert re.findall(r'"reason": "(\w+)"', first.text).count("taken_over") == CALLS


async def _count(ports, number, said, silent_s):
    async def connect():
        return await trio.open_tcp_stream("127.0.0.1", ports[0])

    async with open_caller("ws://127.0.0.1/ws", mode="text", stream=connect) as caller:
        caller.write("count")
        last_s, text = trio.current_time(), ""
        while f"w{WORDS - 1}" not in text:
            await trio.sleep(0.02)
            now = text_of(caller)
            if now != text:
                silent_s.append(trio.current_time() - last_s)
                last_s, text = trio.current_time(), now
        said[number] = text
