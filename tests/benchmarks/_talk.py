"""Calls that talk: 50 frames in and 50 chunks out a second, in bare trio and as ours.

The network is left out on both sides: frames come from a task that sleeps instead of reading, and
the writer task of each call, the same on both sides, takes what it is given and drops it.
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
)

from ._bare import Conversation, Envelope, Table

EVERY_S = 0.02
RATE_HZ = 24_000
_DUE = struct.Struct("<d")
_FRAME_REST = bytes(640 - _DUE.size)
_CHUNK_REST = bytes(int(RATE_HZ * EVERY_S) * 2 - _DUE.size)
_QUEUED_CHUNKS = 64

_SENTENCE = "An answer that goes on and on."
_CLAUSE = "It goes on and on, for three seconds or so, "
_CLAUSE_CHUNKS = 150
"""For how many chunks it is the text: at 15 characters a second, as people speak."""

BEGINNING_S = 1.0
"""Over so long the calls begin: fifty that begin within one frame are late for seconds, which tells
of beginnings and not of calls that talk."""

AHEAD_CHUNKS = 10
"""The agent's voice is 200 ms ahead of what is heard, as any is that bridges jitter."""


class Line:
    """The caller's side: takes everything, and the delay of what was due at a time."""

    def __init__(self, delays_s: list[float] | None = None) -> None:
        self.audio = True
        self.sample_rate_hz = RATE_HZ
        self.delays_s = delays_s
        self.frames = 0
        self.chunks = 0
        self._send, self._receive = trio.open_memory_channel[bytes](_QUEUED_CHUNKS)

    def send(self, message: object) -> None:
        """Take an event."""

    def play(self, utterance: int, pcm: bytes) -> None:
        """Queue a chunk of the agent for the writer."""
        self._send.send_nowait(pcm)

    def clear(self, utterance: int, reason: str) -> None:
        """Take note that what is queued is not wanted: nothing is queued for long."""

    def hear(self, message: Any) -> None:
        """Take a frame of the caller, as a handler."""
        self.frames += 1
        self._note_delay(message.event.pcm)

    async def write(self) -> None:
        """Take what is queued, as a socket would, until cancelled."""
        async for pcm in self._receive:
            self.chunks += 1
            self._note_delay(pcm)

    def _note_delay(self, pcm: bytes) -> None:
        if self.delays_s is not None:
            self.delays_s.append(trio.current_time() - _DUE.unpack_from(pcm)[0])


async def frames(publish: Any, first_s: float) -> None:
    """Publish a frame of the caller every 20 ms, for ever."""
    due_s = first_s
    while True:
        await trio.sleep_until(due_s)
        publish(UserAudio(_DUE.pack(due_s) + _FRAME_REST))
        due_s += EVERY_S


async def _chunks() -> AsyncGenerator[AgentAudio, None]:
    due_s = trio.current_time()
    for _ in range(AHEAD_CHUNKS):
        yield AgentAudio(_DUE.pack(due_s) + _CHUNK_REST, RATE_HZ, last=False)
    while True:
        yield AgentAudio(_DUE.pack(due_s) + _CHUNK_REST, RATE_HZ, last=False)
        due_s += EVERY_S
        await trio.sleep_until(due_s)


async def _answer_bare(_: Envelope) -> AsyncGenerator[AgentAudio, None]:
    async for chunk in _chunks():
        yield chunk


async def _answer_ours(_: object) -> AsyncGenerator[AgentResponse | AgentAudio, None]:
    yield AgentResponse(content=_SENTENCE)
    async for chunk in _chunks():
        yield chunk


async def _answer_in_words(_: object) -> AsyncGenerator[AgentResponse | AgentAudio, None]:
    number = 0
    async for chunk in _chunks():
        if number % _CLAUSE_CHUNKS == 0:
            yield AgentResponse(content=_CLAUSE)
        number += 1
        yield chunk


@asynccontextmanager
async def bare_call(line: Line) -> AsyncIterator[Any]:
    """Open a call in bare trio: a table, a cancel scope for the answer, and a writer task."""
    async with trio.open_nursery() as nursery:
        table = Table()
        table.on(UserAudio, line.hear)
        table.on(AgentAudio, lambda message: line.play(1, message.event.pcm))
        Conversation(
            nursery, table, UserStoppedSpeaking, UserStartedSpeaking, _answer_bare, waits=True
        )
        nursery.start_soon(line.write)
        yield lambda event: table.publish(event, "caller")
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def our_call(line: Line, *, in_words: bool = False) -> AsyncIterator[Any]:
    """Open a call as it is used: an app, a bridge, an interruptible route, the playback ledger.

    Args:
        line: The caller's side.
        in_words: Whether the text of all that is said comes with it, of which bare trio knows
            nothing; else a sentence comes first.
    """
    generate = _answer_in_words if in_words else _answer_ours

    async def answer(call: Call) -> None:
        bridge = call.bridge(name="agent")
        bridge.on(UserAudio).map(line.hear)
        route = bridge.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
        route.stream(generate).broadcast()

    async with App(answer).open_call(line) as call:
        call.nursery.start_soon(line.write)
        yield call.publish


def begins_at_s(begin_s: float, number: int, calls: int) -> float:
    """Return when a call sends its first frame: one after the other, and none in step with another.

    Args:
        begin_s: When the first of them does.
        number: Which it is, from 0.
        calls: How many there are.
    """
    share = number / calls
    return begin_s + EVERY_S * (share + int(share * BEGINNING_S / EVERY_S))


async def hold(
    side: str, line: Line, *, talks: bool, in_words: bool = False, first_s: float = 0.0
) -> None:
    """Be in a call until cancelled.

    Args:
        side: ``bare`` or ``ours``.
        line: The caller's side.
        talks: Whether the caller's microphone and the agent's answer run; else the call idles.
        in_words: As in ``our_call()``.
        first_s: When the first frame comes, in seconds of trio's clock.
    """
    call = bare_call(line) if side == "bare" else our_call(line, in_words=in_words)
    async with call as publish:
        if not talks:
            await trio.sleep_forever()
        await trio.sleep_until(first_s)
        publish(UserStoppedSpeaking())
        await frames(publish, first_s)
