"""SIP between two processes: an agent here, and a second user agent there."""

import json
import socket
import sys
from pathlib import Path

import pytest
import trio

from bargein import App
from bargein.events import AnswerEnded, DTMFInput, UserAudio
from bargein.phone import Sip
from bargein.server import Limits, open_server
from bargein.testing import SpelledSpeech

ROOT = Path(__file__).parents[4]

pytestmark = pytest.mark.proof
pytest.importorskip("baresip", reason="baresip has wheels for Linux alone: the extra sip")


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1] & ~1  # the port above it is TLS's


async def ring(port, lasts_s=1.5, talks_after_s=9.0, key=""):
    """Let a caller call from another process; return what it tells."""
    numbers = [port, free_port(), lasts_s, talks_after_s]
    arguments = [*map(str, numbers), *([key] if key else [])]
    module = "tests.bridge.wires.sip.far_caller"
    with trio.fail_after(30):
        done = await trio.run_process(
            [sys.executable, "-m", module, *arguments], capture_stdout=True, cwd=ROOT
        )
    return json.loads(done.stdout)


async def until(condition):
    with trio.fail_after(10):
        while not condition():  # noqa: ASYNC110 - another process decides
            await trio.sleep(0.02)


async def test_a_call_has_sound_both_ways_and_ends_as_its_caller_hangs_up():
    """An app with ``phone=Sip()`` is heard, hears a key, and stops when the caller talks."""
    frames, keys, calls, ends = [], [], [], []

    async def answer(call):
        calls.append(call)
        call.router.observe(UserAudio, lambda message: frames.append(message.event.pcm))
        call.router.observe(DTMFInput, lambda message: keys.append(message.event.button))
        call.router.observe(AnswerEnded, lambda message: ends.append(message.event))
        call.say("Café Bargein, what can I get you today?")

    port = free_port()
    app = App(answer, phone=Sip(port=port, speech=SpelledSpeech()))
    async with open_server(app, port=0) as server:
        told = await ring(port, 2.5, talks_after_s=1.2, key="5")
        await until(lambda: not server.calls)
    assert told["error"] == ""
    assert told["loud"] > 800, "0.1 s of the agent's voice at least"
    assert len(frames) > 40
    assert any(any(frame) for frame in frames)
    assert keys == ["5"]
    assert told["loud_until_s"] < 2.0, "silent within 0.8 s of the caller's first word"
    assert 0 < len(ends[0].heard) < len(ends[0].generated)
    assert calls[0].end_reason == "hangup"


async def test_a_server_that_is_full_says_busy():
    """The limits of the port hold, and the next caller is answered when there is room."""

    async def answer(call):
        """Says nothing."""

    port = free_port()
    app = App(answer, phone=Sip(port=port))
    async with open_server(app, port=0, limits=Limits(max_calls=1)) as server:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ring, port, 2.0)
            await until(lambda: server.calls == 1)
            assert (await ring(port))["error"] == "CallBusy"
        await until(lambda: not server.calls)
        assert server.metrics.rejected["server_full"] == 1
