"""Sounds that are ready before they are needed: of the app's own files, built in, or tones."""

from __future__ import annotations

import io
import math
import wave
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from bargein.bridge.audio.g711 import decode_mu_law
from bargein.bridge.audio.pcm import to_pcm
from bargein.bridge.languages import language

from ._protocols import SpeechPiece

ENGLISH = language("en")
MOMENT = ENGLISH.fillers[0]

_BUILT_IN = {
    **dict(zip(ENGLISH.fillers, ("one-moment", "still-working"), strict=True)),
    ENGLISH.apology: "apology",
    ENGLISH.in_background: "in-background",
}
"""The texts that are spoken in ``sounds/``, by espeak-ng: 8 kHz, mu-law (ITU-T G.711)."""

BUILT_IN_HZ = 8000

TONE = "(a tone)"
FALLING_TONE = "(a falling tone)"
_TONES_HZ = {TONE: (440.0, 440.0), FALLING_TONE: (440.0, 330.0)}
"""Two short notes each: the same twice for a wait, a falling fourth for a failure."""
_NOTE_S = 0.15
_LOUDNESS = 6000.0
"""The peak of a tone: about that of speech, -15 dB of full scale."""

LONGEST_SOUND_S = 30.0
"""The longest sound for a text, in seconds: nobody listens to a longer one while they wait."""


@dataclass(frozen=True, slots=True)
class PreparedSound:
    """The audio of a text."""

    pieces: tuple[SpeechPiece, ...]
    rate_hz: int
    """The sample rate of all pieces."""


def sound_without_voice(text: str) -> PreparedSound | None:
    """Return the built-in sound of a default text, or of a tone; ``None`` for other texts."""
    return _built_in(text) if text in _BUILT_IN else _tone(text) if text in _TONES_HZ else None


def read_sounds(given: Mapping[str, str | Path | bytes]) -> dict[str, PreparedSound]:
    """Read the sounds of an app.

    Args:
        given: The sound of each text: the path of a WAV file, or its bytes.

    Raises:
        OSError: A file cannot be read.
        TypeError: A sound is neither a path nor bytes.
        ValueError: It is no WAV file of 16-bit mono samples, empty, or longer than
            `LONGEST_SOUND_S`.
    """
    return {text: _read(text, sound) for text, sound in given.items()}


def _read(text: str, sound: object) -> PreparedSound:
    where = f"Fillers(sounds=) for {text!r}"
    if isinstance(sound, str | Path):
        sound = Path(sound).read_bytes()
    if not isinstance(sound, bytes):
        raise TypeError(f"{where} is a path or bytes of a WAV file, not {sound!r}")
    try:
        with wave.open(io.BytesIO(sound)) as file:
            form = file.getnchannels(), file.getsampwidth()
            rate_hz, pcm = file.getframerate(), file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise ValueError(f"{where} is no WAV file: {error}") from error
    if form != (1, 2):
        raise ValueError(
            f"{where} has {form[0]} channels of {8 * form[1]} bits; save it as mono, 16 bits"
        )
    lasts_s = len(pcm) / 2 / rate_hz if rate_hz > 0 else 0.0
    if not 0 < lasts_s <= LONGEST_SOUND_S:
        raise ValueError(f"{where} lasts {lasts_s:g} s; it has to be at most {LONGEST_SOUND_S:g} s")
    return PreparedSound((SpeechPiece(pcm),), rate_hz)


@cache
def _built_in(text: str) -> PreparedSound:
    coded = (files("bargein.nodes.speech") / "sounds" / f"{_BUILT_IN[text]}.mulaw").read_bytes()
    return _sound(decode_mu_law(coded))


@cache
def _tone(name: str) -> PreparedSound:
    count = round(_NOTE_S * BUILT_IN_HZ)
    notes = (
        # Each note swells and fades, so that it does not click.
        round(_LOUDNESS * math.sin(math.pi * n / count) * math.sin(math.tau * hz * n / 8000))
        for hz in _TONES_HZ[name]
        for n in range(count)
    )
    return _sound(to_pcm(array("h", notes)))


def _sound(pcm: bytes) -> PreparedSound:
    return PreparedSound((SpeechPiece(pcm),), BUILT_IN_HZ)
