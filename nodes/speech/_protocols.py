"""What a speech engine is: small protocols, so that any of them can be another's work."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from bargein.bridge.events import WordTiming


@dataclass(frozen=True, slots=True)
class Transcript:
    """What a recogniser heard."""

    text: str
    """The words; empty when nothing was said."""
    no_speech_prob: float = 0.0
    """0 to 1: how likely it is that nobody spoke.  High values also occur on clear speech."""
    avg_logprob: float = 0.0
    """Mean natural logarithm of the tokens' probabilities: 0 is certain, below -1 is a guess."""
    unhinted_confidence: float | None = None
    """For a text whose words all stand in the recogniser's hint: its `confidence` in what it hears
    of the same sound without the hint, 0 if it cannot tell; None for all other texts.  A recogniser
    reads its hint into sounds that are no speech."""
    language: str = ""
    """The language that it heard, as in BCP 47: "fr"; empty where it does not tell."""

    @property
    def confidence(self) -> float:
        """How sure it is that somebody said these words, 0 to 1.

        The better of both signs, as clear speech may lack one of them: below 0.4 Whisper's own
        thresholds take an utterance for silence (0.6 and -1; Radford et al., "Robust Speech
        Recognition via Large-Scale Weak Supervision", 2022, section 4.5).
        """
        better = max(1 - self.no_speech_prob, math.exp(min(self.avg_logprob, 0.0)))
        return min(1.0, max(0.0, better))  # whatever numbers an engine gives


@dataclass(frozen=True, slots=True)
class SpeechPiece:
    """A piece of synthesised speech."""

    pcm: bytes
    """PCM16 little-endian mono at the voice's sample rate, any length."""
    words: tuple[WordTiming, ...] = ()
    """Where the words lie, counted from the piece's first sample; empty if not known."""


@runtime_checkable
class VoiceActivity(Protocol):
    """Tells whether a frame holds speech.  One instance a call, called on the event loop."""

    frame_samples: int
    """Samples of a frame at 16 kHz."""

    def probability(self, frame: bytes) -> float:
        """Return how likely it is that somebody speaks in this frame.

        Args:
            frame: The next `frame_samples` of the call, PCM16 little-endian mono, 16 kHz.

        Returns:
            0 to 1, within a millisecond.
        """
        ...


@runtime_checkable
class SoundOfVoice(Protocol):
    """Tells by the sound of a voice that has just begun what it is.  Shared by all calls, called
    on the event loop."""

    @property
    def kind(self) -> Literal["acknowledgement", "noise"]:
        """What it listens for."""
        ...

    @property
    def after_s(self) -> float:
        """When it is asked: seconds after the onset, which is told 0.064 s after the first sound.
        0.25 is late if the answer is to come within 0.3 s."""
        ...

    def probability(self, pcm: bytes) -> float:
        """Return how likely it is that the voice is of this kind.

        Args:
            pcm: The sound around its beginning, PCM16 little-endian mono, 16 kHz: the last 0.35 s.

        Returns:
            0 to 1, within two milliseconds; from 0.5 on it is of this kind.
        """
        ...


@runtime_checkable
class EchoProbability(Protocol):
    """Tells whether the microphone gives back what the loudspeaker plays.  One instance a call,
    called on the event loop."""

    def probability(self, frame: bytes) -> float:
        """Return how likely it is that the sound of now is the agent's own voice.

        Args:
            frame: The next samples of the microphone, as many as the `VoiceActivity` takes.

        Returns:
            0 to 1, within a millisecond; from 0.5 on the frame is no voice of the caller's.
        """
        ...


@runtime_checkable
class EndOfTurn(Protocol):
    """Tells whether a speaker who fell silent is done.  Shared by all calls."""

    async def probability(self, pcm: bytes) -> float:
        """Return how likely it is that the turn is complete.

        Args:
            pcm: What was said up to now, PCM16 little-endian mono, 16 kHz; the last 8 s count.

        Returns:
            0 to 1; above 0.5 is complete.  Cancelling is safe.
        """
        ...


@runtime_checkable
class SpeechToText(Protocol):
    """Turns an utterance into text.  Shared by all calls."""

    async def transcribe(self, pcm: bytes) -> Transcript:
        """Transcribe one utterance.

        Args:
            pcm: The utterance, PCM16 little-endian mono, 16 kHz.

        Returns:
            What was said.  Cancelling is safe.
        """
        ...


@runtime_checkable
class TextToSpeech(Protocol):
    """Says text.  Shared by all calls."""

    @property
    def sample_rate_hz(self) -> int:
        """Sample rate of the pieces; known once the engine is open."""
        ...

    def synthesize(self, text: str) -> AsyncGenerator[SpeechPiece, None]:
        """Yield the speech piece by piece, as it comes.

        Args:
            text: What is to be said: a clause or more.

        Returns:
            The pieces, in order.  Cancelling is safe: what is not out yet is dropped, at once if
            the use is surrounded with ``contextlib.aclosing``.
        """
        ...
