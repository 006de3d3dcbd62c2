"""The simulated caller's microphone: exact frames of speech, or of a room's noise."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from random import Random
from typing import TypeAlias, final

import trio

from ..audio.pcm import first_audible, samples, to_pcm
from ..client import FRAME_S

TICK_S = 0.02
FRAME_BYTES = 640
"""20 ms of PCM16 mono at 16 kHz."""

HISS = 4
"""Peak of the hiss of a quiet room: -78 dB of full scale."""

Room: TypeAlias = Callable[[bytes, float], bytes]
"""Turns a frame of the caller's voice into what the microphone sends, for example with noise added.

It takes the frame and the time at which its first sample sounded, in seconds of trio's clock, and
returns 640 bytes; it must neither wait nor raise."""


@final
class Microphone:
    """Makes each frame that the caller sends: a line, or the hiss of a quiet room.

    Pass ``next_frame`` to ``open_caller(microphone=…)``.

    Frames lie on an exact grid of 20 ms.  Frame n holds the sound of the 20 ms before its place on
    the grid and is sent then at the earliest.  If a busy machine sends it later, that delay is part
    of every latency, as on a real line.

    Attributes:
        pcm: All audio sent so far, without gaps: PCM16 little-endian mono, 16 kHz.
        voice: The caller's voice alone, sample for sample beside `pcm`.
        room: What turns the voice into what is sent; ``None`` for a quiet room.
    """

    def __init__(self, seed: int = 1) -> None:
        """Make a microphone in a quiet room.

        Args:
            seed: Seeds the hiss.
        """
        random = Random(seed)
        self.pcm = bytearray()
        self.voice = bytearray()
        self.room: Room | None = None
        self._hiss = [_hiss(random) for _ in range(50)]
        self._frames = 0
        self._grid_s = math.inf
        self._line = memoryview(b"")
        self._line_frame = 0
        self._line_first = 0

    @property
    def start_s(self) -> float:
        """When the first sample of `pcm` sounded, in seconds of trio's clock."""
        return self._grid_s - FRAME_S if self._frames else trio.current_time()

    @property
    def line_sounds_at_s(self) -> float:
        """When the first audible sample of the latest line sounds, in seconds of trio's clock."""
        return self.start_s + self._line_frame * FRAME_S + self._line_first / 16_000

    def next_frame(self) -> bytes:
        """Return the next frame, 640 bytes; called every 20 ms, and at once for each late frame."""
        # No frame is ever sent before its time, so the one that was least late shows the grid.
        self._grid_s = min(self._grid_s, trio.current_time() - self._frames * FRAME_S)
        frame = self._hiss[self._frames % len(self._hiss)]
        if self._line:
            frame = bytes(self._line[:FRAME_BYTES]).ljust(FRAME_BYTES, b"\0")
            self._line = self._line[FRAME_BYTES:]
        self.voice += frame
        if self.room is not None:
            frame = self.room(frame, self._grid_s + (self._frames - 1) * FRAME_S)
        self._frames += 1
        self.pcm += frame
        return frame

    async def say(self, pcm: bytes, over: trio.Event) -> None:
        """Say something from the next frame on, and wait until it is sent or the call is over.

        Cancelling is safe: the caller falls silent at the next frame.

        Args:
            pcm: PCM16 little-endian mono, 16 kHz; some of it must be audible.
            over: An event that is set when the call is over, after which no frame is requested.
        """
        self._line_frame = self._frames
        self._line_first = first_audible(samples(pcm)) or 0
        self._line = memoryview(pcm)
        try:
            while True:
                await trio.sleep(TICK_S)
                if not self._line or over.is_set():
                    return
        finally:
            self._line = memoryview(b"")


def _hiss(random: Random) -> bytes:
    """Return a frame of the noise of a quiet room."""
    return to_pcm(array("h", (random.randint(-HISS, HISS) for _ in range(FRAME_BYTES // 2))))
