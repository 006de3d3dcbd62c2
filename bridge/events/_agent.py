"""The events of the agents: what they say, and how much of it is heard.

Audio is a slotted, frozen dataclass: it is routed like an event, but never validated, copied or
logged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field

from bargein.routes import Event, register

from ._call import Outcome
from ._words import WordTiming

HeardBasis = Literal["words", "reported", "clock", "text"]
"""What is known of how far an utterance was heard, best first: word timings of the speech engine;
positions that the caller's player reported; the clock; or only that the text was sent."""


class AgentResponse(Event):
    """A piece of what the agent wants to say.

    Pieces are joined without separators, so each includes its own spaces.
    """

    type: Literal["agent.response"] = "agent.response"
    content: str
    interruptible: bool = True
    """False: once it is being said, no route may cut it; the flag ends with its utterance."""


@register
@dataclass(frozen=True, slots=True)
class AgentAudio:
    """A piece of synthesised speech for the caller, with its text."""

    type: ClassVar[str] = "agent.audio"
    pcm: bytes
    """PCM16 little-endian mono, any length."""
    sample_rate_hz: int
    text: str = ""
    """What this audio says, as it stands in the AgentResponse (spaces included).  Empty for audio
    that goes on saying the text of the piece before it."""
    words: tuple[WordTiming, ...] = ()
    """Where the words of `text` lie, counted from the first sample of this piece; empty if the
    engine does not know."""
    last: bool = True
    """Whether the audio of `text` ends with this piece."""
    utterance: int = 0
    """The utterance it belongs to; a voice has it from ``bridge.utterance_of(message)`` of
    the ``AgentResponse`` it says.  0 for the newest of the turn that published it, and an error
    where no turn did, or none that has said something."""


class AgentStartedSpeaking(Event):
    """The first sound of an utterance reached the caller."""

    type: Literal["agent.started_speaking"] = "agent.started_speaking"
    utterance: int


class AgentStoppedSpeaking(Event):
    """The agent fell silent: an utterance was played to its end, or cut."""

    type: Literal["agent.stopped_speaking"] = "agent.stopped_speaking"
    utterance: int
    cut: bool = False
    """True when something of the utterance was never heard."""


class AgentSpeechSent(Event):
    """Words that the caller has now heard, in the order in which they were heard.

    Where only text travels, what is sent within a tenth of a second is one such event, told before
    all that follows from it.
    """

    type: Literal["agent.speech_sent"] = "agent.speech_sent"
    content: str
    utterance: int


class AgentSpeechCut(Event):
    """What was heard of a cut utterance, and what never will be; published once known."""

    type: Literal["agent.speech_cut"] = "agent.speech_cut"
    utterance: int
    heard: str
    unheard: str
    """The rest of what was generated."""
    at_ms: float
    """How much of the utterance's audio was played."""
    basis: HeardBasis


class AgentTextComplete(Event):
    """No more text of an utterance will come, so an incomplete clause may be said."""

    type: Literal["agent.text_complete"] = "agent.text_complete"
    utterance: int


class AgentAudioComplete(Event):
    """All audio of an utterance was synthesised; no more will come."""

    type: Literal["agent.audio_complete"] = "agent.audio_complete"
    utterance: int


class AgentUtteranceQueued(Event):
    """All audio of an utterance was handed to the transport; published again after a resend."""

    type: Literal["agent.utterance_queued"] = "agent.utterance_queued"
    utterance: int


class AgentGenerationComplete(Event):
    """A generation ended, in whatever way; published exactly once for each."""

    type: Literal["agent.generation_complete"] = "agent.generation_complete"
    outcome: Outcome
    content: str = ""
    """All text that was generated, heard or not."""
    turn: int = 0
    """The number of the turn within its call, from 1."""


class AgentHandoff(Event):
    """The floor goes to another agent of the call."""

    type: Literal["agent.handoff"] = "agent.handoff"
    target: str
    """The name of the bridge that gets the floor."""
    reason: str = ""


class AgentError(Event):
    """Something failed on the agent's side; the call goes on."""

    type: Literal["agent.error"] = "agent.error"
    message: str
    """What went wrong, for a person; names the error's class, and says what the framework says of
    it, never what was said."""
    route: str = ""
    """The chain that failed, as it was written."""
    stage: str = ""
    """The stage of that chain."""
    detail: str = Field(default="", exclude=True, repr=False)
    """For the developer: the text of the exception, which may quote what was said, and the line of
    the app that raised it.  It is left out wherever the event is written as JSON."""
