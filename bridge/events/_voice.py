"""The events of a caller's voice before it is known to be a turn, and the decisions about it.

Ears and recognisers publish the ``voice.*`` events; turn taking turns them into
``UserStartedSpeaking``, ``UserTranscriptionReceived`` and ``UserStoppedSpeaking``.  Their aliases
are not ``user.*``, because a rule on ``"user.*"`` means what the caller does, not what a microphone
picks up.
"""

from typing import Literal

from pydantic import Field

from bargein.routes import Event

from ..validation.foreign_data import ForeignText
from ._words import WordTiming

DecisionValue = str | int | float | bool


class VoiceStarted(Event):
    """A voice started: a turn, a backchannel, a cough or an echo; it is not known yet which."""

    type: Literal["voice.started"] = "voice.started"
    distant: float = Field(default=0.0, ge=0, le=1)
    """The probability that it is further away than the caller, such as babble, 0 to 1; the agent is
    not held for such a voice.  A `VoiceHint` says what becomes known later."""


class VoiceStopped(Event):
    """The voice stopped or paused; it may start again at once."""

    type: Literal["voice.stopped"] = "voice.stopped"
    voiced_s: float = Field(default=0.0, ge=0)
    """How many seconds it was heard; 0 if unknown."""


class VoiceHint(Event):
    """What a voice sounds like, before any word of it is known."""

    type: Literal["voice.hint"] = "voice.hint"
    kind: Literal["speech", "acknowledgement", "noise", "echo", "distant"]
    probability: float = Field(ge=0, le=1)


class VoiceWords(Event):
    """The words that a recogniser found in the caller's voice."""

    type: Literal["voice.words"] = "voice.words"
    content: ForeignText
    """The words; empty if there were none."""
    final: bool = True
    """False for interim words, which the next ones of the same segment replace."""
    tentative: bool = False
    """True for words requested in a silence that may be only a gap: they, or that there are none,
    decide whether the agent's speech is held for what follows, and interrupt nothing; others follow
    soon."""
    withdrawn: bool = False
    """True if the words of this segment so far are not valid, since their sound is heard again."""
    segment: int = Field(default=0, ge=0)
    """The part of the turn: words of one segment replace each other, and a turn consists of its
    segments in order."""
    confidence: float | None = Field(default=None, ge=0, le=1)
    """0 to 1, or ``None`` if the recogniser reports none."""
    unhinted_confidence: float | None = Field(default=None, ge=0, le=1)
    """For words that are all in the recogniser's hint: its confidence, 0 to 1, that the sound has
    words at all when recognised without the hint; 0 if unknown.  ``None`` for all other words."""
    ending_confidence: float | None = Field(default=None, ge=0, le=1)
    """How sure the recogniser is of the last word, and that the sentence ends behind it, 0 to 1;
    ``None`` if it does not report that, or if the background is nearly as loud as the caller."""
    language: ForeignText = ""
    """The language of the words, as in BCP 47: "fr"; empty if the recogniser does not report it."""
    speaker: ForeignText = ""
    """The recogniser's name for who spoke; empty if it does not report one."""
    words: tuple[WordTiming, ...] = ()
    """When each word was said, in seconds from the first sample of the call that the recogniser
    heard; empty if it does not report times."""
    error: ForeignText = ""
    """The class of the error that kept the recogniser from returning words; empty if it worked.
    Words of the segment that are already known stay."""


class VoiceSettled(Event):
    """The decision about the sound so far is made; the next sound is judged on its own."""

    type: Literal["voice.settled"] = "voice.settled"


class TurnScored(Event):
    """How complete a turn sounds to an end-of-turn model, at a pause of the caller."""

    type: Literal["turn.scored"] = "turn.scored"
    complete: float = Field(ge=0, le=1)
    over: bool = False
    """Whether an ear with its own turn detection decided that the turn is over."""


class TurnLikelyOver(Event):
    """The caller has paused and is probably done: an answer may be started, unheard."""

    type: Literal["turn.likely_over"] = "turn.likely_over"
    content: ForeignText
    """What was said so far."""


class TurnWentOn(Event):
    """The caller was not done: discard what was prepared since ``TurnLikelyOver``."""

    type: Literal["turn.went_on"] = "turn.went_on"


class TranscriptionFailed(Event):
    """The caller was heard but no words were recognised, so there is no turn to answer.

    A ``UserStartedSpeaking`` is followed by a ``UserStoppedSpeaking`` or by one of these.  Words
    that come later are a turn of their own.
    """

    type: Literal["turn.transcription_failed"] = "turn.transcription_failed"
    reason: Literal["failed", "timed_out", "no_words"]
    """The recogniser failed, returned nothing in time, or found no words."""
    error: ForeignText = ""
    """For ``failed``, the name of the error's class."""
    interrupted: bool = False
    """Whether the agent was interrupted for it."""


class ListeningFailed(Event):
    """An ear fails: from now on the agent does not hear the caller.

    Ears publish it once, and ``ListeningResumed`` when they hear again; snapshots show it until
    then.
    """

    type: Literal["voice.listening_failed"] = "voice.listening_failed"
    error: ForeignText
    """The name of the error's class."""


class ListeningResumed(Event):
    """An ear that failed hears the caller again."""

    type: Literal["voice.listening_resumed"] = "voice.listening_resumed"
    failed_s: float = Field(default=0.0, ge=0)
    """How many seconds it heard nothing."""


class EarFellSilent(Event):
    """An ear reports nothing more about the current turn, though the caller has stopped speaking.

    It may be waiting for a thinking caller, or be half dead.  Its next report takes this back.
    """

    type: Literal["voice.ear_fell_silent"] = "voice.ear_fell_silent"


class TurnDecided(Event):
    """A decision about turns, with the rule that made it and what it saw."""

    type: Literal["turn.decided"] = "turn.decided"
    about: Literal["start", "end", "barge_in", "nudge"]
    decision: ForeignText
    """``interruption``, ``acknowledgement``, ``noise``, ``echo``, ``muted``, ``complete``, ..."""
    rule: ForeignText
    """The setting or strategy that decided."""
    values: dict[str, DecisionValue] = Field(default_factory=dict)
    """What the rule compared; never what was said."""


class AgentSpeechHeld(Event):
    """The agent's voice stands still at the sample being heard."""

    type: Literal["agent.speech_held"] = "agent.speech_held"
    reason: ForeignText


class AgentSpeechReleased(Event):
    """The agent's voice continues, or what was held was cut."""

    type: Literal["agent.speech_released"] = "agent.speech_released"
    reason: ForeignText
    held_s: float
    respoken: bool = False
    """True if the player could not stand still: it continues from the first word not heard."""


class UserAway(Event):
    """Nobody has said anything since the agent fell silent."""

    type: Literal["turn.user_away"] = "turn.user_away"
    away_s: float
    count: int
    """How often in a row, from 1."""


class AgentIdle(Event):
    """The agent has worked for a long time without a sound."""

    type: Literal["turn.agent_idle"] = "turn.agent_idle"
    idle_s: float
    count: int
    """How often in this answer, from 1."""
