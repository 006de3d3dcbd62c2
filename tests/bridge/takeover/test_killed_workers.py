"""A worker is killed under calls that it answers; their clients go on at another one."""

from __future__ import annotations

import os
import re
import signal
import sys

import pytest
import trio

from bargein.client import open_caller
from bargein.protocol import Resumed, Transcript
from tests.bridge.stopping import PATIENCE_S, port_of, program

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(sys.platform == "win32", reason="sockets that processes inherit"),
]

AGENT = """
import trio
from bargein import App
from bargein.events import AgentResponse, UserTranscriptionReceived


async def answer(call):
    agent = call.bridge(name="counts")

    async def reply(message):
        yield AgentResponse(content="begin ")
        for number in range(40):
            yield AgentResponse(content=f"w{number} ")
            await trio.sleep(0.05)

    agent.on(UserTranscriptionReceived).stream(reply).broadcast()


app = App(answer)
"""

CALLS = 8


def test_no_call_and_no_word_is_lost_with_a_worker(tmp_path):
    """Each answer goes on at another worker, with every word once and in order."""
    (tmp_path / "agent.py").write_text(AGENT)
    options = ("--workers", "2", "--max-calls", str(CALLS))  # so that each gets its half
    with program(tmp_path, "serve", "--port", "0", *options) as server:
        server.until(lambda: server.text.count('"server_started"') == 2)
        port, victim = port_of(server.text), _pids(server)[0]
        said, silent_s = {}, []

        async def main():
            async with trio.open_nursery() as nursery:
                for number in range(CALLS):
                    nursery.start_soon(_count, port, number, said, silent_s)
                await trio.sleep(1.2)
                os.kill(victim, signal.SIGKILL)

        trio.run(main)
        server.until('"call_taken"')
    whole = "begin " + "".join(f"w{number} " for number in range(40))
    assert [said[number] for number in range(CALLS)] == [whole] * CALLS
    print("longest silence, s:", round(max(silent_s), 2))
    assert max(silent_s) < 4.0  # of a busy machine


def _pids(server):
    return [int(one) for one in re.findall(r'"pid": (\d+)', server.text)]


async def _count(port, number, said, silent_s):
    with trio.fail_after(PATIENCE_S):
        async with open_caller(f"ws://127.0.0.1:{port}/ws", mode="text") as caller:
            caller.write("count")
            last_s, text = trio.current_time(), ""
            while "w39" not in text:
                await trio.sleep(0.02)
                now = text_of(caller)
                if now != text:
                    silent_s.append(trio.current_time() - last_s)
                    last_s, text = trio.current_time(), now
            said[number] = text


def text_of(caller):
    """What a client shows: a fresh transcript replaces what was there."""
    text = ""
    for received in caller.received:
        message = received.message
        if isinstance(message, Resumed) and message.fresh:
            text = "".join(one.text for one in message.transcript if one.role == "agent")
        elif isinstance(message, Transcript) and message.role == "agent":
            text += message.text
    return text
