"""The events of the agents: what they say, and how much of it is heard.

Audio is a slotted, frozen dataclass: it is routed like an event, but never validated, copied or
logged.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field

from bargein.routes import Event, Outcome, register

from ..validation.foreign_data import ForeignText
from ._words import WordTiming

HeardBasis = Literal["words", "reported", "clock", "text"]
"""How the heard part of an utterance is known, best first: word timings of the speech engine;
positions reported by the caller's player; the clock; or only that the text was sent."""


class AgentResponse(Event):
    """A piece of what the agent wants to say.

    Pieces are joined without separators, so each includes its own spaces.
    """

    type: Literal["agent.response"] = "agent.response"
    content: ForeignText
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
    """What this audio says, exactly as in the AgentResponse, including spaces.  Empty for audio
    that continues the text of the previous piece."""
    words: tuple[WordTiming, ...] = ()
    """When the words of ``text`` are said, from the first sample of this piece; empty if the engine
    does not know."""
    last: bool = True
    """Whether the audio of `text` ends with this piece."""
    utterance: int = 0
    """The utterance it belongs to; a voice has it from ``bridge.utterance_of(message)`` of
    the ``AgentResponse`` it says.  0 means the newest of the answer that published it; it is an
    error if no answer did, or if that answer has no text."""


class AgentStartedSpeaking(Event):
    """The first sound of an utterance reached the caller."""

    type: Literal["agent.started_speaking"] = "agent.started_speaking"
    utterance: int


class AgentStoppedSpeaking(Event):
    """The agent fell silent: an utterance was played to its end, or cut."""

    type: Literal["agent.stopped_speaking"] = "agent.stopped_speaking"
    utterance: int
    cut: bool = False
    """True if a part of the utterance was never heard."""


class AgentSpeechSent(Event):
    """Words that the caller has now heard, in the order in which they were heard.

    In a text-only call, text sent within a tenth of a second shares one event, which is published
    before its consequences.
    """

    type: Literal["agent.speech_sent"] = "agent.speech_sent"
    content: ForeignText
    utterance: int


class AgentSpeechCut(Event):
    """How much of a cut utterance was heard, and what never will be; published once known."""

    type: Literal["agent.speech_cut"] = "agent.speech_cut"
    utterance: int
    heard: ForeignText
    unheard: ForeignText
    """The rest of the generated text."""
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
    """All audio of an utterance was sent to the transport; published again after a resend."""

    type: Literal["agent.utterance_queued"] = "agent.utterance_queued"
    utterance: int


class AgentGenerationComplete(Event):
    """A generation ended, for whatever reason; published exactly once for each."""

    type: Literal["agent.generation_complete"] = "agent.generation_complete"
    outcome: Outcome
    content: ForeignText = ""
    """All generated text, heard or not."""
    answer: int = 0
    """The number of the answer within its call, from 1."""


class AgentStaysSilent(Event):
    """The answer that publishes it deliberately ends without words; otherwise it would fail.

    Publish it in the answer: yield it in a node, or publish it in a tool.
    """

    type: Literal["agent.stays_silent"] = "agent.stays_silent"
    reason: str = ""
    """Why, for people who read the events."""


class AgentHandoff(Event):
    """The floor goes to another agent of the call."""

    type: Literal["agent.handoff"] = "agent.handoff"
    target: ForeignText
    """The name of the bridge that gets the floor."""
    reason: ForeignText = ""


class AgentError(Event):
    """Something failed on the agent's side; the call continues."""

    type: Literal["agent.error"] = "agent.error"
    message: ForeignText
    """What went wrong, for a person: the class of the error and the framework's own text, never
    what anybody said."""
    route: ForeignText = ""
    """The failed chain, as written."""
    stage: ForeignText = ""
    """The stage of that chain."""
    detail: ForeignText = Field(default="", exclude=True, repr=False)
    """For the developer: the text of the exception, which may quote what was said, and the line of
    the app that raised it.  It is left out wherever the event is written as JSON."""
