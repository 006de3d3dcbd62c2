"""The protocols of speech engines, which your own engines can implement."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from bargein.bridge.events import WordTiming

_SOMEBODY_SPOKE = 0.4
"""From this probability on Whisper's own threshold takes a sound for speech, whatever it says."""


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
    """For a text whose words all come from the recogniser's hint: the `confidence` in what it hears
    of the same audio without the hint, 0 if it cannot tell; ``None`` for all other texts. A
    recogniser may read its hint into sounds that are not speech."""
    language: str = ""
    """The language of the words, as a BCP 47 tag such as "fr"; empty if unknown."""
    ending_confidence: float | None = None
    """0 to 1: how sure the recogniser is of the last word, and that the sentence ends behind it;
    ``None`` if it cannot tell, as for any other number. A word that breaks off, or that more words
    follow, has a low one."""

    @property
    def confidence(self) -> float:
        """How certain it is that somebody said these words, 0 to 1.

        The higher of two signs, because clear speech may lack one. Below 0.4, Whisper's own
        thresholds take an utterance for silence (0.6 and -1; Radford et al., "Robust Speech
        Recognition via Large-Scale Weak Supervision", 2022, section 4.5). That somebody spoke says
        no more than 0.4 of words that are too unlikely for their number: of coughs and laughs
        Whisper makes "I'm so sorry." at -2.
        """
        spoke = 1 - self.no_speech_prob
        if spoke > _SOMEBODY_SPOKE:
            least = -(1 + 2 / max(1, len(self.text.split())))  # few words have a few bad tokens
            fits = math.exp(2 * min(0.0, self.avg_logprob - least))
            spoke = max(_SOMEBODY_SPOKE, spoke * fits)
        better = max(spoke, math.exp(min(self.avg_logprob, 0.0)))
        return min(1.0, max(0.0, better))  # whatever numbers an engine returns


@dataclass(frozen=True, slots=True)
class SpeechPiece:
    """A piece of synthesised speech."""

    pcm: bytes
    """PCM16 little-endian mono at the voice's sample rate, any length: half a sample at its end
    belongs to the next piece."""
    words: tuple[WordTiming, ...] = ()
    """The times of the words from the piece's first sample; empty if unknown."""


@runtime_checkable
class VoiceActivity(Protocol):
    """Detects speech in a frame; one instance per call, called on the event loop."""

    frame_samples: int
    """The number of samples in a frame, at 16 kHz."""

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
    """Classifies a new voice by its sound; shared by all calls, called on the event loop."""

    @property
    def kind(self) -> Literal["acknowledgement", "noise"]:
        """The kind of sound that it detects."""
        ...

    @property
    def after_s(self) -> float:
        """When to ask it, in seconds after the onset, which is detected 0.064 s after the first
        sound; at most 0.25 if the answer should come within 0.3 s."""
        ...

    def probability(self, pcm: bytes) -> float:
        """Return how likely it is that the voice is of this kind.

        Args:
            pcm: The last 0.48 s, around the voice's beginning, PCM16 little-endian mono, 16 kHz.

        Returns:
            0 to 1, within two milliseconds; from 0.5 on, the voice counts as this kind.
        """
        ...


@runtime_checkable
class NoiseFilter(Protocol):
    """Removes noise from a microphone's audio; one instance per call, called on the event loop."""

    def clean(self, pcm: bytes) -> bytes:
        """Return the audio without its noise, as far as it is ready.

        Args:
            pcm: The next samples of the microphone, PCM16 little-endian mono at 16 kHz, any length.

        Returns:
            The same format, within a millisecond.  A filter that works in blocks keeps the rest for
            the next call; over time it returns as many samples as it got.
        """
        ...


@runtime_checkable
class EchoProbability(Protocol):
    """Detects the agent's echo in a microphone; one per call, called on the event loop."""

    def probability(self, frame: bytes) -> float:
        """Return how likely it is that this frame is the agent's own voice.

        Args:
            frame: The next samples of the microphone, as many as ``VoiceActivity`` takes.

        Returns:
            0 to 1, within a millisecond; from 0.5 on, the frame does not count as the caller's
            voice.
        """
        ...


@runtime_checkable
class EndOfTurn(Protocol):
    """Predicts whether a speaker who fell silent is done; shared by all calls."""

    async def probability(self, pcm: bytes) -> float:
        """Return how likely it is that the turn is complete.

        Args:
            pcm: The turn so far, PCM16 little-endian mono, 16 kHz; only the last 8 s count.

        Returns:
            0 to 1; above 0.5 is complete.  Cancelling is safe.
        """
        ...


@runtime_checkable
class Recogniser(Protocol):
    """Transcribes whole utterances; shared by all calls."""

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
    """Speaks text; shared by all calls."""

    @property
    def sample_rate_hz(self) -> int:
        """Sample rate of the pieces; known once the engine is open."""
        ...

    def synthesize(self, text: str) -> AsyncGenerator[SpeechPiece, None]:
        """Yield speech piece by piece, as it is synthesised.

        Args:
            text: The text, one clause or more.

        Returns:
            The pieces in order.  Cancelling is safe and drops the rest, at once if you use
                ``contextlib.aclosing``.
        """
        ...
