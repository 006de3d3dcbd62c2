"""The view of an undecided sound that strategies get."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ._agent_state_view import AgentView

HintKind = Literal["speech", "acknowledgement", "noise", "echo", "distant"]

CLOSE_S = 1e-9
"""The rounding error of sums of times."""


@dataclass(frozen=True, slots=True)
class Hint:
    """What the sound itself seems to be, before its words are known."""

    kind: HintKind
    probability: float


@dataclass(frozen=True, slots=True)
class Sound:
    """What is known about a sound of the caller at one moment."""

    now_s: float
    """This moment, on trio's clock."""
    voiced_s: float = 0.0
    """How long the voice was heard, including breaks shorter than the timeout, in seconds."""
    voiced_before_s: float = 0.0
    """How long it was heard before the last longer break, in seconds."""
    is_voiced: bool = True
    """Whether the voice continues."""
    silent_s: float = 0.0
    """How long it has been silent, in seconds; 0 while it continues."""
    held_s: float = 0.0
    """How long the agent's speech has been held for it, in seconds; 0 if it is not held."""
    hint: Hint | None = None
    """The newest hint at what it is."""
    hint_is_old: bool = False
    """Whether that came before the voice fell silent and went on again."""
    text: str = ""
    """Its words so far."""
    confidence: float | None = None
    """The recogniser's lowest confidence in its words, 0 to 1; ``None`` if it reports none."""
    unhinted_confidence: float | None = None
    """If all its words are in the recogniser's hint: the confidence, 0 to 1, that there are words
    at all when the recogniser hears the sound without the hint; ``None`` for all other words."""
    words_known: bool = False
    """Whether no better words are to be expected."""
    since_noise_s: float = math.inf
    """How long ago the sound before it was found to be a noise, in seconds; infinity if it was
    not."""
    since_turn_s: float = math.inf
    """How long after the caller's last turn and the agent's answer to it the sound began, in
    seconds; negative during the answer, infinity before the first turn."""
    words_tentative: bool = False
    """Whether its words were recognised in a silence that may be a gap, so that better ones come
    soon."""
    words_are_old: bool = False
    """Whether the voice went on after its words, and no further ones are known yet."""
    waited_s: float = 0.0
    """How long nothing was heard of it, in seconds: no voice, no words, no hint."""
    agent: AgentView = field(default_factory=AgentView)
    """The agent at this moment."""
    saying: str = ""
    """What the agent said around the time of the sound; empty if it was silent."""

    @property
    def is_over(self) -> bool:
        """Whether the voice has stopped and its words are known."""
        return self.words_known and not self.is_voiced

    def lasts(self, seconds: float) -> bool:
        """Whether the voice was heard for that long.

        Args:
            seconds: The least duration.
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
    """A strategy's decision on a sound."""

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
    """What it is: ``silence`` for a sound that has stopped and ``unclear`` for one that continues,
    of which no more is known; ``too_few_words`` for words that do not interrupt and are kept."""
    rule: str = ""
    """The setting that decided."""
    values: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    """The values that were compared; never what was said."""
    final: bool = True
    """Whether nothing can change it any more; otherwise the agent's speech goes on, and the
    strategy is asked again."""
    ask_in_s: float = math.inf
    """In how many seconds to ask again without a change, at least 0.005; infinity for never."""
