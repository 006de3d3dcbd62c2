"""Talking calls: 50 frames a second in, and a voice like a vendor's out, in bare trio and in ours.

The voice comes in pieces of 200 ms at three times real time, with its words.

The network is left out on both sides: frames come from a task that sleeps instead of reading, and
the writer task of each call, the same on both sides, drops what it gets.
"""

from __future__ import annotations

import struct
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

from bargein import App, Call
from bargein.events import (
    AgentAudio,
    AgentResponse,
    UserAudio,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    WordTiming,
)

from ._bare import Conversation, Envelope, Table

EVERY_S = 0.02
RATE_HZ = 24_000
_DUE = struct.Struct("<d")
_FRAME_REST = bytes(640 - _DUE.size)
_QUEUED_CHUNKS = 64

PIECE_S = 0.2
SPEED = 3
"""The pace of the voice: pieces of 200 ms at three times real time, like vendors'."""

CLAUSE = "It goes on and on, for three seconds or so, "
CLAUSE_S = 3.0
"""Its length in seconds, at 15 characters a second, as people speak."""

PIECES = int(CLAUSE_S / PIECE_S)
WORDS = {
    number * PIECES // len(CLAUSE.split()): (WordTiming(word, 0.0, PIECE_S),)
    for number, word in enumerate(CLAUSE.split())
}
"""The words of each piece of a clause."""

PIECE_BYTES = int(PIECE_S * RATE_HZ) * 2

BEGINNING_S = 1.0
"""How long the starts of the calls are spread, in seconds: fifty calls that start within one frame
are late for seconds, which would measure the start and not talking calls."""


class Line:
    """The caller's side: receives everything, and records how late the caller's frames were."""

    def __init__(self, delays_s: list[float] | None = None) -> None:
        self.audio = True
        self.sample_rate_hz = RATE_HZ
        self.delays_s = delays_s
        self.frames = 0
        self.chunks = 0
        self._send, self._receive = trio.open_memory_channel[bytes](_QUEUED_CHUNKS)

    def send(self, message: object) -> None:
        """Receive an event."""

    def play(self, utterance: int, pcm: bytes) -> None:
        """Queue a chunk of the agent for the writer."""
        self._send.send_nowait(pcm)

    def clear(self, utterance: int, reason: str) -> None:
        """Do nothing, because nothing is queued for long."""

    def hear(self, message: Any) -> None:
        """Handle a frame of the caller."""
        self.frames += 1
        if self.delays_s is not None:
            due_s = _DUE.unpack_from(message.event.pcm)[0]
            self.delays_s.append(trio.current_time() - due_s)

    async def write(self) -> None:
        """Drain the queue, as a socket would, until cancelled."""
        async for _ in self._receive:
            self.chunks += 1


async def frames(publish: Any, first_s: float) -> None:
    """Publish a frame of the caller every 20 ms, for ever."""
    due_s = first_s
    while True:
        await trio.sleep_until(due_s)
        publish(UserAudio(_DUE.pack(due_s) + _FRAME_REST))
        due_s += EVERY_S


async def _voice() -> AsyncGenerator[AgentAudio, None]:
    at_s = trio.current_time()
    while True:
        for number in range(PIECES):
            text = CLAUSE if number == 0 else ""
            is_last = number == PIECES - 1
            pcm = bytes(PIECE_BYTES)  # a voice makes each piece anew
            yield AgentAudio(pcm, RATE_HZ, text, WORDS.get(number, ()), last=is_last)
            await trio.sleep(PIECE_S / SPEED)
        at_s += CLAUSE_S
        await trio.sleep_until(at_s)


async def _play_at_pace(ahead: list[bytes], line: Line) -> None:
    while True:
        if ahead:
            line.play(1, ahead.pop(0))
        await trio.sleep(PIECE_S)


async def _answer_bare(_: Envelope) -> AsyncGenerator[AgentAudio, None]:
    async for piece in _voice():
        yield piece


async def _answer_ours(_: object) -> AsyncGenerator[AgentResponse | AgentAudio, None]:
    async for piece in _voice():
        if piece.text:
            yield AgentResponse(content=piece.text)
        yield piece


@asynccontextmanager
async def bare_call(line: Line, *, paced: bool = False) -> AsyncIterator[Any]:
    """Open a call in bare trio: a table, a cancel scope for the answer, and a writer task.

    Args:
        line: The caller's side.
        paced: Whether audio is kept until it is heard, so that it can be cut.
    """
    async with trio.open_nursery() as nursery:
        table = Table()
        table.on(UserAudio, line.hear)
        if paced:
            ahead: list[bytes] = []
            table.on(AgentAudio, lambda message: ahead.append(message.event.pcm))
            nursery.start_soon(_play_at_pace, ahead, line)
        else:
            table.on(AgentAudio, lambda message: line.play(1, message.event.pcm))
        Conversation(
            nursery, table, UserStoppedSpeaking, UserStartedSpeaking, _answer_bare, waits=True
        )
        nursery.start_soon(line.write)
        yield lambda event: table.publish(event, "caller")
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def our_call(line: Line) -> AsyncIterator[Any]:
    """Open a call as users do: an app, a bridge, an interruptible route, playout."""

    async def answer(call: Call) -> None:
        bridge = call.bridge(name="agent")
        bridge.on(UserAudio).map(line.hear)
        route = bridge.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
        route.stream(_answer_ours).broadcast()

    async with App(answer).open_call(line) as call:
        call.nursery.start_soon(line.write)
        yield call.publish


def begins_at_s(begin_s: float, number: int, calls: int) -> float:
    """Return when a call sends its first frame, so that no two calls are in step.

    Args:
        begin_s: When the first call starts.
        number: The number of the call, from 0.
        calls: The number of calls.
    """
    share = number / calls
    return begin_s + EVERY_S * (share + int(share * BEGINNING_S / EVERY_S))


async def hold(side: str, line: Line, *, talks: bool, first_s: float = 0.0) -> None:
    """Be in a call until cancelled.

    Args:
        side: ``bare``, ``paced`` (bare, and audio is kept until it is heard) or ``ours``.
        line: The caller's side.
        talks: Whether the caller's microphone and the agent's answer run; otherwise the call idles.
        first_s: When the first frame comes, in seconds of trio's clock.
    """
    call = our_call(line) if side == "ours" else bare_call(line, paced=side == "paced")
    async with call as publish:
        if not talks:
            await trio.sleep_forever()
        await trio.sleep_until(first_s)
        publish(UserStoppedSpeaking())
        await frames(publish, first_s)
