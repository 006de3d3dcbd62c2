"""A simulated microphone: sends audio to the server frame by frame, in real time."""

from __future__ import annotations

from collections import deque
from typing import final

import trio

from ._call_records import SentSpeech

FRAME_S = 0.02
FRAME_BYTES = 640
"""20 ms of PCM16 mono at 16 kHz."""

_LATE_S = 0.002
"""How many seconds late a timer may be within one utterance; a longer gap is a pause."""


@final
class MicrophoneAudio:
    """A microphone that returns the audio it is given, and silence otherwise.

    Attributes:
        spoke: What was said so far; the oldest is forgotten.
    """

    def __init__(self, keep_last: int | None = None) -> None:
        """Start silent.

        Args:
            keep_last: How many frames of speech to keep; what is said without a pause stays whole.
        """
        self._keep_last = keep_last
        self._frames = 0
        self.spoke: deque[SentSpeech] = deque()
        self._to_say = bytearray()
        self._all_said = trio.Event()

    async def say(self, pcm: bytes) -> None:
        """Say something; return once all of it was read, or the call is over.

        Cancelling this makes it silent from the next frame on.

        Args:
            pcm: PCM16 little-endian mono 16 kHz, any length.

        Raises:
            RuntimeError: It is saying something already.
        """
        if self._to_say:
            raise RuntimeError("this caller is already speaking; wait for speak() to return")
        if not pcm:
            await trio.lowlevel.checkpoint()
            return
        self._all_said = trio.Event()
        self._to_say += pcm
        try:
            await self._all_said.wait()
        finally:
            self._to_say.clear()

    def stop(self) -> None:
        """Make ``say()`` return, because the call is over."""
        self._all_said.set()

    def next_frame(self) -> bytes:
        """Return the next 20 ms of speech, or silence."""
        frame = bytes(self._to_say[:FRAME_BYTES])
        if not frame:
            return bytes(FRAME_BYTES)
        now = trio.current_time()
        last = self.spoke[-1] if self.spoke else None
        if last is None or now - last.at_s > len(last.pcm) / 32_000 + _LATE_S:
            last = SentSpeech(now, bytearray())
            self.spoke.append(last)
        last.pcm += frame
        self._frames += 1
        self._forget_oldest()
        del self._to_say[:FRAME_BYTES]
        if not self._to_say:
            self._all_said.set()
        return frame.ljust(FRAME_BYTES, b"\0")

    def _forget_oldest(self) -> None:
        if self._keep_last is not None:
            while self._frames > self._keep_last and len(self.spoke) > 1:
                self._frames -= -(-len(self.spoke.popleft().pcm) // FRAME_BYTES)
