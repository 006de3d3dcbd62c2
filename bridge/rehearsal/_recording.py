"""Both sides of a call on one sample clock."""

from __future__ import annotations

import wave
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..audio.fades import FADE_S, PlayedAudio, fades_of
from ..audio.pcm import first_audible, last_audible, samples, to_pcm
from ..audio.resample import resample
from ..events import CallState

RATE_HZ = 24_000
"""The agent's sample rate, so that its track equals what left the loudspeaker, bit for bit."""


@dataclass(frozen=True, slots=True)
class Span:
    """The position of a stretch of an utterance in the agent's track, in samples."""

    utterance: int
    start: int
    stop: int


@dataclass(slots=True)
class Recording:
    """What a caller said and heard.

    Tracks hold 16-bit samples at 24 kHz; sample n of each sounded at ``start_s + n / 24000``.
    """

    start_s: float
    """Time zero of the recording, in seconds of trio's clock."""
    duration_s: float
    """Length of both tracks in seconds."""
    caller: array[int]
    """What the caller said."""
    agent: array[int]
    """What the caller heard of the agent's utterances, as they were synthesised; silence where
    nothing was played."""
    spans: tuple[Span, ...]
    """The position of each utterance in the agent's track, in order of time."""
    states: tuple[tuple[float, CallState], ...] = ()
    """The states of the call, each with its start in seconds of the recording."""
    generated: Mapping[int, array[int]] = field(default_factory=dict)
    """All audio that was synthesised for each utterance, heard or not."""
    sent: array[int] | None = None
    """What the caller's microphone sent, noise of the room included; ``None`` if that is
    `caller`."""
    faded: array[int] | None = None
    """What left the loudspeaker: `agent` with faded edges; ``None`` if nothing was faded."""

    @property
    def sounded(self) -> array[int]:
        """What left the loudspeaker: `agent`, with the fades that keep it from clicking."""
        return self.agent if self.faded is None else self.faded

    def of(self, utterance: int) -> array[int]:
        """Return the audio of an utterance that was heard, without gaps."""
        heard = array("h")
        for span in self.spans:
            if span.utterance == utterance:
                heard += self.agent[span.start : span.stop]
        return heard

    def dropped(self, utterance: int) -> tuple[int, array[int]]:
        """Return the audio of an utterance that was never heard, up to the next heard audio.

        Args:
            utterance: Its number; some of it must have been heard.

        Returns:
            The index in the track at which the audio would have begun, and its samples.
        """
        stop = max(span.stop for span in self.spans if span.utterance == utterance)
        rest = self.generated.get(utterance, array("h"))[len(self.of(utterance)) :]
        later = [span.start for span in self.spans if span.start >= stop]
        return stop, rest[: min([len(self.agent), *later]) - stop]

    def first_agent_s(self, utterance: int) -> float | None:
        """Return when the first audible sample of an utterance was heard; ``None`` if never."""
        found = (
            first_audible(self.agent, s.start, s.stop)
            for s in self.spans
            if s.utterance == utterance
        )
        return next((index / RATE_HZ for index in found if index is not None), None)

    def last_agent_s(self, utterance: int, before_s: float | None = None) -> float | None:
        """Return when the last audible sample of an utterance was heard; ``None`` if never.

        Args:
            utterance: Its number.
            before_s: Only samples before this time count, in seconds of the recording; ``None``
                counts all.
        """
        limit = len(self.agent) if before_s is None else round(before_s * RATE_HZ)
        for span in reversed(self.spans):
            if span.utterance == utterance and span.start < limit:
                stop = min(self._faded_until(span), limit)
                index = last_audible(self.sounded, span.start, stop)
                if index is not None:
                    return index / RATE_HZ
        return None

    def _faded_until(self, span: Span) -> int:
        """Return the sample at which a stretch has faded out, or the next one begins."""
        later = [other.start for other in self.spans if other.start >= span.stop]
        return min([len(self.agent), span.stop + round(FADE_S * RATE_HZ), *later])

    def caller_sound(self, from_s: float, until_s: float) -> tuple[float, float] | None:
        """Return when the caller was first and last audible in a stretch; ``None`` if never.

        Args:
            from_s: Start of the stretch, in seconds of the recording.
            until_s: Its end.
        """
        start, stop = round(from_s * RATE_HZ), round(until_s * RATE_HZ)
        first = first_audible(self.caller, start, stop)
        last = last_audible(self.caller, start, stop)
        if first is None or last is None:
            return None
        return first / RATE_HZ, last / RATE_HZ

    def write_wav(self, path: Path) -> None:
        """Write a stereo WAV, PCM16 at 24 kHz: what the caller sent left, the agent right."""
        both = array("h", bytes(4 * len(self.caller)))
        both[0::2] = self.caller if self.sent is None else self.sent
        both[1::2] = self.sounded
        with wave.open(str(path), "wb") as file:
            file.setnchannels(2)
            file.setsampwidth(2)
            file.setframerate(RATE_HZ)
            file.writeframes(to_pcm(both))


def record(
    *,
    start_s: float,
    end_s: float,
    spoke: bytes | bytearray,
    spoke_at_s: float,
    heard: Sequence[PlayedAudio],
    spoke_rate_hz: int = 16_000,
    states: Sequence[tuple[float, CallState]] = (),
    generated: Mapping[int, array[int]] | None = None,
    sent: bytes | bytearray | None = None,
    fades: bool = False,
) -> Recording:
    """Put both sides of a call on one clock; audio outside the recording's time is dropped.

    Args:
        start_s: When the recording begins, in seconds of trio's clock.
        end_s: When it ends.
        spoke: What the caller said, without gaps: PCM16 little-endian mono.
        spoke_at_s: When the first sample of `spoke` sounded.
        heard: What left the loudspeaker, at 24 kHz and in order of time.
        spoke_rate_hz: Sample rate of `spoke` and `sent`.
        states: The states of the call, each with its start in seconds of trio's clock.
        generated: All audio that was synthesised for each utterance, at 24 kHz.
        sent: What the microphone sent, sample for sample beside `spoke`; ``None`` if that is
            `spoke`.
        fades: Whether the loudspeaker fades where speech is held, cut or resumed, as players do.
    """
    length = max(0, round((end_s - start_s) * RATE_HZ))
    caller, agent = array("h", bytes(2 * length)), array("h", bytes(2 * length))
    at = round((spoke_at_s - start_s) * RATE_HZ)
    _write_samples(caller, _at_our_rate(spoke, spoke_rate_hz), at)
    line = None
    if sent is not None:
        line = array("h", bytes(2 * length))
        _write_samples(line, _at_our_rate(sent, spoke_rate_hz), at)
    spans = []
    for piece in heard:
        start, stop = _write_samples(
            agent, samples(piece.pcm), round((piece.at_s - start_s) * RATE_HZ)
        )
        if stop > start:
            spans.append(Span(piece.utterance, start, stop))
    faded = agent[:]
    for fade in fades_of(heard, RATE_HZ) if fades else ():
        _mix(faded, fade.samples, round((fade.at_s - start_s) * RATE_HZ))
    return Recording(
        start_s=start_s,
        duration_s=length / RATE_HZ,
        caller=caller,
        agent=agent,
        spans=tuple(spans),
        states=tuple((max(0.0, at_s - start_s), state) for at_s, state in states),
        generated=dict(generated or {}),
        sent=line,
        faded=faded if fades else None,
    )


def _at_our_rate(pcm: bytes | bytearray, rate_hz: int) -> array[int]:
    # The shortest filter: a longer one rings for more than a millisecond before a sound begins.
    return samples(resample(bytes(pcm), rate_hz, RATE_HZ, quality="LQ"))


def _mix(track: array[int], values: array[int], at: int) -> None:
    """Add values to a track, as far as they fit."""
    for index in range(max(at, 0), min(at + len(values), len(track))):
        track[index] = max(-32768, min(32767, track[index] + values[index - at]))


def _write_samples(track: array[int], values: array[int], at: int) -> tuple[int, int]:
    """Write values into a track, as far as they fit, and return their start and end."""
    start, stop = max(at, 0), min(at + len(values), len(track))
    if stop <= start:
        return start, start
    track[start:stop] = values[start - at : stop - at]
    return start, stop
