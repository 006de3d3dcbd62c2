"""Load 17: the memory of a call with vendors' ear and voice, while it listens and talks.

The fakes are in a process of their own, behind TLS; the voice sends its audio at three times real
time, like vendors. Each figure comes from a process of its own, which runs this module: ``talking
100 rss 1.0 wss://localhost:1 wss://localhost:2`` prints bytes per call.
"""

from __future__ import annotations

import math
import os
import sys
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from bargein import App, Call
from bargein.ears import DeepgramFlux
from bargein.events import AgentResponse, UserAudio, UserStartedSpeaking, UserStoppedSpeaking
from bargein.speech import Speech
from bargein.voices import CartesiaVoice

from ._measure import Row, Size
from ._process import logs_to_nowhere, run_python
from ._talk import Line
from .memory import KB, measured_bytes, used_bytes
from .providers import providers

SPEED = "3"
WARM_CALLS = 5
OPENS_WITHIN_S = 0.05
"""How long a call may take to open, in seconds, including the TLS handshake of its ear."""

FRAME_S = 0.02
FRAME = bytes(640)

ANSWER = "It goes on and on, for a sentence or so, and then there is another one. " * 5
"""Lasts 18 s in the fake's voice; a model has written it before its first word is heard."""

LISTENED_S, SPREAD_S, TALKED_S = 3.0, 1.0, 4.0
"""How long each call listens before its answer, how far the starts of the answers are spread, and
how much of its answer the last call has played when measured, in seconds; a tenth of that in the
tiny size."""

CHUNK_S = 0.1
"""The length of a piece for the player, in seconds."""

BOUNDS = {"listening": 240.0, "talking": 450.0}
"""A listening call took 200 and 180 kB, allocated and resident, and a talking one 290 and 260, on
two busy cores. 66 kB are the two seconds that an ear would hear again over another line. The rest
of a talking call is audio that is not heard yet, at most 3 s and a clause: 48 kB a second. A
talking call with a local voice takes 90 kB (`memory`), without an ear."""


async def _generate(_: object) -> AsyncIterator[AgentResponse]:
    yield AgentResponse(content=ANSWER)


async def _answer(call: Call) -> None:
    chain = call.bridge(name="agent").on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
    chain.stream(_generate).broadcast()


async def _hold(app: App, opens_s: float, line: Line, talks_at: float) -> None:
    """Hold a call, and have it answered at a frame of the caller."""
    await trio.sleep_until(opens_s)
    async with app.open_call(line) as call:
        call.nursery.start_soon(line.write)
        due_s = trio.current_time()
        while True:
            call.publish(UserAudio(FRAME))
            line.frames += 1
            if line.frames == talks_at:
                call.publish(UserStoppedSpeaking())
            due_s += FRAME_S
            await trio.sleep_until(due_s)


async def _bytes_per_call(
    state: str, calls: int, meter: str, scale: float, ear: str, voice: str
) -> float:
    speech = Speech(
        DeepgramFlux(api_key="k", base_url=ear),
        CartesiaVoice("joe", api_key="k", base_url=voice),
        fillers=None,
    )
    app = App(_answer, speech=speech)
    async with speech.open():

        async def hold(nursery: trio.Nursery, count: int) -> None:
            lines = [Line() for _ in range(count)]
            for number, line in enumerate(lines):
                opens_s = trio.current_time() + number * OPENS_WITHIN_S
                at_s = scale * (LISTENED_S + SPREAD_S * number / count)
                talks_at = round(at_s / FRAME_S) if state == "talking" else math.inf
                nursery.start_soon(_hold, app, opens_s, line, talks_at)
            frames = scale * (LISTENED_S + SPREAD_S) / FRAME_S
            done = scale * TALKED_S / CHUNK_S if state == "talking" else 0
            while any(one.frames < frames or one.chunks < done for one in lines):  # noqa: ASYNC110  # waits for audio
                await trio.sleep(FRAME_S)

        async with trio.open_nursery() as nursery:
            await hold(nursery, WARM_CALLS)
            nursery.cancel_scope.cancel()
        before = used_bytes(meter)
        async with trio.open_nursery() as nursery:
            await hold(nursery, calls)
            used = used_bytes(meter) - before
            nursery.cancel_scope.cancel()
    return used / calls


def rows(size: Size) -> list[Row]:
    """Run the load."""
    meters = ("tracemalloc", "rss") if size.resident else ("tracemalloc",)
    calls = max(2, size.memory_calls // 15)
    scale = 1.0 if size.memory_s >= 1 else 0.1
    with TemporaryDirectory() as folder, providers(SPEED, folder) as urls:
        os.environ["SSL_CERT_FILE"] = str(Path(folder) / "ca.pem")
        try:
            return [
                _row(size, state, bound if scale == 1 else None, meter, calls, scale, urls)
                for state, bound in BOUNDS.items()
                for meter in meters
            ]
        finally:
            del os.environ["SSL_CERT_FILE"]


def _row(
    size: Size,
    state: str,
    bound: float | None,
    meter: str,
    calls: int,
    scale: float,
    urls: tuple[str, str],
) -> Row:
    local = "idle" if state == "listening" else "talking"
    local_kb = measured_bytes("ours", local, 10, meter, size.memory_s) / KB
    asked = (state, str(calls), meter, str(scale), *urls)
    kb = float(run_python("-m", "tests.benchmarks.vendor_memory", *asked)) / KB
    what = "allocated" if meter == "tracemalloc" else "resident"
    return Row(
        name=f"memory with vendors, {state}, {what}",
        unit="kB",
        bare=local_kb,
        bare_p99=None,
        ours=kb,
        ours_p99=None,
        value=kb,
        bound=bound,
        note=f"{calls} calls; on the left, one whose voice is local",
    )


if __name__ == "__main__":
    _state, _calls, _meter, _scale, *_urls = sys.argv[1:]
    if _meter == "tracemalloc":
        tracemalloc.start()
    with logs_to_nowhere():
        _used = trio.run(_bytes_per_call, _state, int(_calls), _meter, float(_scale), *_urls)
    print(_used)
