"""Load 16: the time from a vendor's message that a voice began to the transport's ``clear()``.

The fake ear runs in the same loop and records when it sends the message, so that both sides include
its cost.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from time import perf_counter_ns
from typing import Any

import trio

from bargein import App, Call
from bargein.ears import DeepgramFlux
from bargein.events import AgentResponse, UserAudio, UserStartedSpeaking, UserStoppedSpeaking
from bargein.fakes import FakeCartesiaVoice, FakeDeepgramFlux
from bargein.speech import Speech
from bargein.voices import CartesiaVoice

from ._bare_provider import open_bare
from ._measure import Row, Size, compare
from ._process import logs_to_nowhere

SOUND = b"\x01\x10" * 320
EVERY_S = 0.02
TALKS_S = 0.5
"""How long the agent has talked when the caller begins, in seconds."""

BOUND = 5.0
"""It took 4.1 and 4.2 times as long as the loop that only clears: 1.1 ms to 0.25."""


class _Flux(FakeDeepgramFlux):
    """Records when it reports the start of a voice."""

    def __init__(self) -> None:
        super().__init__()
        self.told_ns = 0

    def began(self, turn: Any) -> Sequence[Any]:
        self.told_ns = perf_counter_ns()
        return super().began(turn)


class _Line:
    """A caller's side that records when ``clear()`` is called."""

    audio = True
    sample_rate_hz = 24_000

    def __init__(self) -> None:
        self.cleared = trio.Event()
        self.cleared_ns = 0

    def send(self, message: object) -> None:
        """Receive an event."""

    def play(self, utterance: int, pcm: bytes) -> None:
        """Receive audio."""

    def clear(self, utterance: int, reason: str) -> None:
        """Record the first call."""
        if not self.cleared.is_set():
            self.cleared_ns = perf_counter_ns()
            self.cleared.set()


async def _bare(flux: _Flux, ear: str, voice: str, line: _Line) -> None:
    async with (
        open_bare(f"{ear}/v2/listen", Authorization="Token k") as socket,
        trio.open_nursery() as nursery,
    ):
        await trio.sleep(TALKS_S)

        async def speak() -> None:
            while True:
                await socket.send(4 * SOUND)
                await trio.sleep(4 * EVERY_S)

        nursery.start_soon(speak)
        async for message in socket.messages():
            if message.get("event") == "StartOfTurn":
                line.clear(1, "the caller speaks")
                break
        nursery.cancel_scope.cancel()


async def _generate(_: object) -> AsyncIterator[AgentResponse]:
    yield AgentResponse(content="It goes on and on and on. " * 10)


async def _answer(call: Call) -> None:
    chain = call.bridge(name="agent").on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
    chain.stream(_generate).broadcast()


async def _ours(flux: _Flux, ear: str, voice: str, line: _Line) -> None:
    speech = Speech(
        DeepgramFlux(api_key="k", base_url=ear),
        CartesiaVoice("joe", api_key="k", base_url=voice),
        fillers=None,
    )
    async with speech.open(), App(_answer, speech=speech).open_call(line) as call:
        call.publish(UserStoppedSpeaking())
        await trio.sleep(TALKS_S)
        while not line.cleared.is_set():
            call.publish(UserAudio(SOUND))
            await trio.sleep(EVERY_S)


def _measured(side: Any, times: int) -> list[float]:
    """Return the time of each run, in ms."""

    async def once() -> float:
        flux, line = _Flux(), _Line()
        async with flux.serve() as ear, FakeCartesiaVoice().serve() as voice:
            with trio.fail_after(10):
                await side(flux, f"ws://127.0.0.1:{ear}", f"ws://127.0.0.1:{voice}", line)
        return (line.cleared_ns - flux.told_ns) / 1e6

    with logs_to_nowhere():
        return [trio.run(once) for _ in range(times)]


def rows(size: Size) -> list[Row]:
    """Run the load."""
    return [
        compare(
            "a vendor's fact to clear()", "ms",
            lambda: _measured(_bare, min(10, size.interrupts)),
            lambda: _measured(_ours, min(10, size.interrupts)),
            rounds=max(1, size.stream_rounds // 2), bound=BOUND, note="one caller",
        )
    ]  # fmt: skip
