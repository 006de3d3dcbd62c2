"""The sound of ``bargein phone``: the caller's voice, a microphone and a loudspeaker, in mu-law."""

from __future__ import annotations

import wave
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from bargein.bridge.audio.errors import need
from bargein.bridge.audio.g711 import decode_mu_law, encode_mu_law
from bargein.bridge.audio.resample import resample
from bargein.nodes.speech import EspeakVoice
from bargein.routes import BargeinError

from .fake_media import FRAME_S, RATE_HZ, FakeMediaCall

FRAME_SAMPLES = round(RATE_HZ * FRAME_S)
SILENCE = encode_mu_law(bytes(2 * FRAME_SAMPLES))

MOST_WAITING = 10
"""How many frames of the microphone may wait: 0.2 s; older ones are dropped."""


class SoundFileError(BargeinError, ValueError):
    """A file cannot be played to an agent."""


def wav_of(path: Path) -> bytes:
    """Return the sound of a WAV file: mu-law, 8 kHz.

    Raises:
        SoundFileError: It is no WAV of 16-bit samples.
        OSError: It cannot be read.
    """
    try:
        with wave.open(str(path), "rb") as file:
            channels, width, rate_hz = file.getnchannels(), file.getsampwidth(), file.getframerate()
            pcm = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise SoundFileError(f"{path} is no WAV: {error}") from error
    if width != 2:
        raise SoundFileError(f"{path} has samples of {8 * width} bits; write 16")
    first = b"".join(pcm[at : at + 2] for at in range(0, len(pcm), 2 * channels))
    return encode_mu_law(resample(first, rate_hz, RATE_HZ))


class ScriptVoice:
    """Speaks what the caller says: mu-law, 8 kHz."""

    def __init__(self) -> None:
        """Make a voice; nothing is loaded before ``open()``."""
        self._voice = EspeakVoice("en-us+f3", words_per_minute=150, word_gap=1)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Load the voice.

        Raises:
            SpeechExtraError: The extra ``espeak`` is missing.
        """
        async with self._voice.open():
            yield

    async def speak(self, text: str) -> bytes:
        """Return the sound of a text."""
        pcm = b"".join([piece.pcm async for piece in self._voice.synthesize(text)])
        return encode_mu_law(resample(pcm, self._voice.sample_rate_hz, RATE_HZ))


class Handset:
    """The microphone and the loudspeaker of this machine, as a telephone's."""

    def __init__(self, line: FakeMediaCall) -> None:
        """Hold the telephone of a call.

        Args:
            line: Gets the microphone's sound, and gives the loudspeaker its own.
        """
        self._line = line
        self._spoken: deque[bytes] = deque(maxlen=MOST_WAITING)
        self._heard = bytearray()

    async def run(self) -> None:
        """Carry sound until cancelled.

        Raises:
            SpeechExtraError: The extra ``voice`` is missing.
        """
        sounddevice = need("bargein phone", "sounddevice", "voice")
        options = {"samplerate": RATE_HZ, "channels": 1, "dtype": "int16"}
        options["blocksize"] = FRAME_SAMPLES
        self._line.plug_in(self._next_frame)
        with (
            sounddevice.RawInputStream(callback=self._store_spoken, **options),
            sounddevice.RawOutputStream(callback=self._play_heard, **options),
        ):
            while True:
                self._heard += decode_mu_law(self._line.player.new_sound())
                await trio.sleep(FRAME_S / 2)

    def _next_frame(self) -> bytes:
        return self._spoken.popleft() if self._spoken else SILENCE

    # --- in the threads of the sound library ----------------------------------------------------

    def _store_spoken(self, pcm: Any, frames: int, time: Any, status: Any) -> None:
        self._spoken.append(encode_mu_law(bytes(pcm)))

    def _play_heard(self, out: Any, frames: int, time: Any, status: Any) -> None:
        size = min(2 * frames, len(self._heard))
        out[:] = bytes(self._heard[:size]) + bytes(2 * frames - size)
        del self._heard[:size]
