"""Tests of the simulated microphone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
import trio

from bargein import App, Call
from bargein.events import UserAudio
from bargein.rehearsal import Microphone, first_audible, samples

Ring = Callable[..., Any]


class Deaf:
    """A speech stack that neither hears nor speaks; with it a call carries audio."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        yield

    def attach(self, call: Call) -> None:
        pass


class Listener:
    """Takes down what the agent's side hears, as an agent that says nothing."""

    def __init__(self) -> None:
        self.frames: list[tuple[float, bytes]] = []

    async def answer(self, call: Call) -> None:
        def hear(message: Any) -> None:
            self.frames.append((trio.current_time(), message.event.pcm))

        call.router.add_sink(hear, UserAudio)
        await trio.lowlevel.checkpoint()


async def test_a_line_goes_out_whole_and_in_real_time(
    autojump_clock: trio.testing.MockClock, ring: Ring, tone: Callable[..., Any]
) -> None:
    """Every frame is sent at its 20 ms; a line comes bit for bit, with hiss around it."""
    line, heard = tone(0.1, rate_hz=16_000).tobytes(), Listener()
    microphone = Microphone()
    async with ring(App(heard.answer, speech=Deaf()), microphone=microphone.next_frame) as caller:
        await trio.sleep_until(1.005)
        await microphone.say(line, caller.ended)
        said_s = trio.current_time()
        await trio.sleep(0.5)
    assert 1.1 <= said_s <= 1.15
    times = [at_s for at_s, _ in heard.frames[2:]]
    assert all(abs(b - a - 0.02) < 1e-6 for a, b in pairwise(times))
    whole = b"".join(pcm for _, pcm in heard.frames)
    assert line in whole
    before = samples(whole[: whole.index(line)])
    assert first_audible(before) is None
    assert any(before[-320:])


async def test_the_microphone_knows_when_its_line_sounds(
    autojump_clock: trio.testing.MockClock, ring: Ring, tone: Callable[..., Any]
) -> None:
    """A frame holds the 20 ms before it was sent, so its first sound is that much older."""
    line, heard = bytes(2 * 160) + tone(0.1, rate_hz=16_000).tobytes(), Listener()
    microphone = Microphone()
    async with ring(App(heard.answer, speech=Deaf()), microphone=microphone.next_frame) as caller:
        await trio.sleep_until(1.005)
        await microphone.say(line, caller.ended)
    sent_s = next(at_s for at_s, pcm in heard.frames if first_audible(samples(pcm)) is not None)
    assert microphone.line_sounds_at_s == pytest.approx(sent_s - 0.02 + 0.01)
    offset_s = (first_audible(samples(microphone.pcm)) or 0) / 16_000
    assert microphone.start_s + offset_s == pytest.approx(microphone.line_sounds_at_s)


async def test_frames_that_a_busy_machine_sends_late_keep_their_time(
    autojump_clock: trio.testing.MockClock, ring: Ring
) -> None:
    """Lateness is no excuse: sound counts from when it was made, not from when it was sent."""
    microphone = Microphone()
    async with ring(App(Listener().answer, speech=Deaf()), microphone=microphone.next_frame):
        await trio.sleep(0.5)
        start_s = microphone.start_s
        autojump_clock.jump(0.3)
        await trio.sleep(0.5)
        assert microphone.start_s == pytest.approx(start_s)
        seconds = len(microphone.pcm) / 32_000
        assert seconds == pytest.approx(trio.current_time() - start_s, abs=0.021)


async def test_saying_ends_with_the_call(
    autojump_clock: trio.testing.MockClock, ring: Ring, tone: Callable[..., Any]
) -> None:
    """A line that the end of the call cuts off returns at once."""

    async def answer(call: Call) -> None:
        await trio.sleep(1)
        call.end("busy")

    microphone = Microphone()
    async with ring(App(answer, speech=Deaf()), microphone=microphone.next_frame) as caller:
        await microphone.say(tone(5.0, rate_hz=16_000).tobytes(), caller.ended)
        assert trio.current_time() < 1.2
        assert caller.reason == "busy"


async def test_a_cancelled_line_falls_silent(
    autojump_clock: trio.testing.MockClock, ring: Ring, tone: Callable[..., Any]
) -> None:
    """Whoever stops saying a line is silent from the next frame on."""
    microphone = Microphone()
    async with ring(
        App(Listener().answer, speech=Deaf()), microphone=microphone.next_frame
    ) as caller:
        with trio.move_on_after(0.5):
            await microphone.say(tone(5.0, rate_hz=16_000).tobytes(), caller.ended)
        said = len(microphone.pcm)
        await trio.sleep(0.2)
        assert first_audible(samples(microphone.pcm[said:])) is None


async def test_a_room_is_sent_and_the_voice_is_kept(
    autojump_clock: trio.testing.MockClock, ring: Ring, tone: Callable[..., Any]
) -> None:
    """The line carries what the room makes of each frame; the caller's own voice lies beside it."""
    microphone, times = Microphone(), []

    def room(frame: bytes, at_s: float) -> bytes:
        times.append(at_s)
        return bytes(len(frame))

    heard = Listener()
    app = App(heard.answer, speech=Deaf())
    async with ring(app, microphone=microphone.next_frame) as caller:
        microphone.room = room
        await microphone.say(tone(0.1, rate_hz=16_000).tobytes(), caller.ended)
        await trio.sleep(0.1)
    assert len(microphone.pcm) == len(microphone.voice)
    assert first_audible(samples(microphone.voice)) is not None
    assert first_audible(samples(microphone.pcm)) is None
    assert all(first_audible(samples(pcm)) is None for _, pcm in heard.frames)
    steps = {round(later - earlier, 6) for earlier, later in pairwise(times)}
    assert steps == {0.02}
    # The first frame of all went out before the room was there.
    missed = len(microphone.pcm) // 640 - len(times)
    assert times[0] == pytest.approx(microphone.start_s + missed * 0.02)
