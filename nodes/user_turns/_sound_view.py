"""What strategies are shown: a sound of the caller's that is not decided yet."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ._agent_view import AgentView

HintKind = Literal["speech", "acknowledgement", "noise", "echo"]

CLOSE_S = 1e-9
"""What sums of times are off by."""


@dataclass(frozen=True, slots=True)
class Hint:
    """What the sound itself seems to be, before its words are known."""

    kind: HintKind
    probability: float


@dataclass(frozen=True, slots=True)
class Sound:
    """What is known of a sound of the caller at one moment."""

    now_s: float
    """This moment, on trio's clock."""
    voiced_s: float = 0.0
    """For how long the voice was heard; breaks that were shorter than the time-out are none."""
    voiced_before_s: float = 0.0
    """For how long it was heard before the last longer break."""
    is_voiced: bool = True
    """Whether the voice goes on."""
    silent_s: float = 0.0
    """For how long it has been silent; 0 while it goes on."""
    held_s: float = 0.0
    """For how long the agent's speech has been held for it; 0 if it is not."""
    hint: Hint | None = None
    """The newest hint at what it is."""
    hint_is_old: bool = False
    """Whether that came before the voice fell silent and went on again."""
    text: str = ""
    """Its words so far."""
    confidence: float | None = None
    """How sure the recogniser is of its least sure words, 0 to 1; None if it does not tell."""
    unhinted_confidence: float | None = None
    """Where all its words stand in the recogniser's hint: how sure the recogniser is, 0 to 1, that
    there are words at all if it hears the sound without the hint; None for all other words."""
    words_known: bool = False
    """Whether no better words are to be expected."""
    since_noise_s: float = math.inf
    """How long ago the sound before it was found to be a noise; infinite if none was."""
    words_tentative: bool = False
    """Whether they were heard in a silence that may be a gap: better ones come soon."""
    words_are_old: bool = False
    """Whether the voice went on behind them, and no others are known yet."""
    waited_s: float = 0.0
    """For how long nothing at all was heard of it: no voice, no words, no hint."""
    agent: AgentView = field(default_factory=AgentView)
    """The agent at this moment."""
    saying: str = ""
    """What the agent said around the time of the sound; empty if it was silent."""

    @property
    def is_over(self) -> bool:
        """Whether the voice has stopped and its words are known."""
        return self.words_known and not self.is_voiced

    def lasts(self, seconds: float) -> bool:
        """Whether the voice was heard for so long.

        Args:
            seconds: How long.
        """
        return self.voiced_s >= seconds - CLOSE_S

    def seems(self, kind: HintKind, above: float) -> bool:
        """Whether the newest hint says so with enough certainty.

        Args:
            kind: What the sound may be.
            above: The least probability that counts.
        """
        return self.hint is not None and self.hint.kind == kind and self.hint.probability >= above


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a strategy makes of a sound."""

    decision: Literal[
        "undecided",
        "interruption",
        "acknowledgement",
        "noise",
        "echo",
        "silence",
        "unclear",
        "too_few_words",
    ]
    """What it is: ``silence`` for a sound that has stopped, ``unclear`` for one that goes on, of
    which no more is known; ``too_few_words`` for words that do not interrupt and are kept."""
    rule: str = ""
    """The setting that decided."""
    values: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    """What was compared; never what was said."""
    final: bool = True
    """Whether nothing that is still to come can change it; else the agent's speech goes on, and the
    sound is looked at again."""
    look_in_s: float = math.inf
    """In how many seconds to ask again though nothing new is known; infinite for never."""
