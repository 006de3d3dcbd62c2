"""The caller's sound on a telephone line: put in order, decoded, and resampled to frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, final

from ...audio.errors import need
from ...audio.g711 import decode_a_law, decode_mu_law, encode_a_law, encode_mu_law
from ...audio.resample import EvenResampler
from ._media_codec import Encoding, LineFormat

RATE_HZ = 16_000
FRAME_BYTES = 640
"""20 ms of PCM16 mono at 16 kHz: the length of every UserAudio of a call."""

MOST_KEPT = 4
"""How many later pieces of sound are kept while one is missing, where they come out of order: 80 ms
at 20 ms each."""

LONGEST_GAP_S = 1.0
"""Up to how many seconds of missing sound become silence; ears fill a longer gap by themselves."""

WILD = 100
"""How far a piece's place may be from the one that is due; a line cannot have come to another."""

DECODERS: Mapping[Encoding, Callable[[bytes], bytes]] = {
    "mu_law": decode_mu_law,
    "a_law": decode_a_law,
    "l16": bytes,
}
ENCODERS: Mapping[Encoding, Callable[[bytes], bytes]] = {
    "mu_law": encode_mu_law,
    "a_law": encode_a_law,
    "l16": bytes,
}


@final
class LineSound:
    """Turns the coded pieces of one line into frames of 20 ms at 16 kHz.

    What is missing becomes silence of its length, so that the frames follow the line's clock.

    Attributes:
        dropped: How many pieces came too late, or twice.
    """

    __slots__ = ("_decode", "_frames", "_kept", "_most_kept", "_next", "_resampler", "_sound",
                 "dropped")  # fmt: skip

    def __init__(self, sound: LineFormat, *, keeps_order: bool) -> None:
        """Start a line.

        Args:
            sound: How its sound is coded.
            keeps_order: Whether it comes in order, so that nobody waits for a missing piece.

        Raises:
            SpeechExtraError: A package that resamples is not installed.
        """
        self.dropped = 0
        self._sound = sound
        self._decode = DECODERS[sound.encoding]
        self._resampler = resampler_from(sound.rate_hz)
        self._frames = bytearray()
        self._most_kept = 0 if keeps_order else MOST_KEPT
        self._kept: dict[int, bytes] = {}
        self._next: int | None = None

    def push(self, coded: bytes, order: int | None) -> list[bytes]:
        """Add a piece, and return the frames that are whole.

        Args:
            coded: The piece.
            order: Its place, if the carrier tells one.
        """
        if order is None:
            return self._framed(coded)
        if order == self._next and not self._kept:
            self._next = order + 1
            return self._framed(coded)
        return [frame for piece in self._in_order(coded, order) for frame in self._framed(piece)]

    def _framed(self, coded: bytes) -> list[bytes]:
        pcm = self._resampler.push(self._decode(coded))
        if len(pcm) == FRAME_BYTES and not self._frames:
            return [pcm]
        waiting = self._frames
        waiting += pcm
        whole = len(waiting) // FRAME_BYTES * FRAME_BYTES
        frames = [bytes(waiting[at : at + FRAME_BYTES]) for at in range(0, whole, FRAME_BYTES)]
        del waiting[:whole]
        return frames

    def _in_order(self, coded: bytes, order: int) -> list[bytes]:
        """Return the pieces that are next, once `coded` is there, silence for missing ones too."""
        kept = self._kept
        if self._next is None or not -WILD < order - self._next < WILD:
            kept.clear()
            self._next = order
        if order < self._next or order in kept:
            self.dropped += 1
            return []
        kept[order] = coded
        ready = []
        while kept:
            if self._next in kept:
                ready.append(kept.pop(self._next))
                self._next += 1
            elif len(kept) > self._most_kept:
                ready.append(self._silence((min(kept) - self._next) * len(coded)))
                self._next = min(kept)
            else:
                break
        return ready

    def _silence(self, size: int) -> bytes:
        longest = int(LONGEST_GAP_S * 1000) * self._sound.bytes_per_ms
        return self._sound.silence(size) if size <= longest else b""


class PieceResampler(Protocol):
    """Returns each piece of a stream at another rate, as long as it was."""

    def push(self, pcm: bytes, /) -> bytes:
        """Add a piece, and return one of the same duration."""
        ...


class _Same:
    @staticmethod
    def push(pcm: bytes) -> bytes:
        return pcm


def resampler_from(rate_hz: int) -> PieceResampler:
    """Return what turns sound of a rate into that of a call, 16 kHz.

    Raises:
        SpeechExtraError: A package is missing.
    """
    if rate_hz == RATE_HZ:
        return _Same()
    return Doubler() if 2 * rate_hz == RATE_HZ else EvenResampler(rate_hz, RATE_HZ)


HALF_TAPS = 12
"""How many samples on each side count for one between two: 1.5 ms at 8 kHz, which is the lag."""


class Doubler:
    """Doubles the sample rate of a stream: each piece becomes one of the same duration.

    For telephone lines, where the pieces of soxr come in bursts of 60 ms.  Between two samples lies
    the sum of 24, weighted by a sinc and a Kaiser window: images lie 60 dB below what is heard.
    """

    __slots__ = ("_last", "_weights")

    def __init__(self) -> None:
        """Start a stream.

        Raises:
            SpeechExtraError: numpy is not installed.
        """
        np = need("Doubler", "numpy", "phone")
        at = np.arange(-HALF_TAPS, HALF_TAPS) + 0.5
        weights = np.sinc(at) * np.kaiser(2 * HALF_TAPS, 5.0)
        self._weights = (weights / weights.sum()).astype(np.float32)
        self._last = np.zeros(2 * HALF_TAPS - 1, np.float32)

    def push(self, pcm: bytes) -> bytes:
        """Add a piece, and return one of the same duration.

        Args:
            pcm: PCM16 little-endian mono, whole samples.
        """
        import numpy as np

        new = np.frombuffer(pcm, "<i2")
        all_of_it = np.concatenate((self._last, new.astype(np.float32)))
        doubled = np.empty(2 * len(new), np.float32)
        doubled[::2] = all_of_it[HALF_TAPS - 1 : HALF_TAPS - 1 + len(new)]
        doubled[1::2] = np.convolve(all_of_it, self._weights, "valid")
        self._last = all_of_it[len(new) :]
        np.clip(np.rint(doubled, out=doubled), -32768, 32767, out=doubled)
        return doubled.astype("<i2").tobytes()
