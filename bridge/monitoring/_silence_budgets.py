"""How long each stage of an answer may keep the caller in silence before it stalls."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..events import AnswerStage
from ..validation.numbers import check_numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """How many seconds of silence each stage of an answer may cause; ``None`` leaves it unwatched.

    Silence counts from the end of the caller's turn or of the agent's last sound, whichever is
    later.  The current stage stalls when its budget runs out.

    The default, 2.2 s, leaves a filler 0.3 s to reach the caller before a silence of 2.5 s.  People
    on the telephone begin to ask whether anybody is there after about a second (Jefferson,
    "Preliminary notes on a possible metric ...", 1989); a local model on two cores may take longer
    than that, and answer well.
    """

    ear_s: float | None = 1.8
    """From the end of the caller's voice to the words.  Recognisers take 0.2 to 2 s; a vendor's ear
    may take 0.5 s to notice the end."""
    end_of_turn_s: float | None = 7.0
    """From the end of the caller's voice, with words, to the decision that the turn is over.  Until
    then the caller may be thinking, so it is above the longest wait of any ear (6 s)."""
    first_token_s: float | None = 2.2
    """To the first text of a language model, or of whatever else answers."""
    between_tokens_s: float | None = 2.2
    """From one piece of its text to the next."""
    tool_s: float | None = 2.2
    """While tools run after the agent has said all it had to say."""
    first_audio_s: float | None = 2.2
    """From text to its first sound."""
    between_audio_s: float | None = 2.2
    """From one sound of a text to the next."""
    line_s: float | None = 2.2
    """While the caller's connection is lost, so that nobody hears the agent."""

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            TypeError: A budget is not a number.
            ValueError: A budget is not above 0, or infinite.
        """
        check_numbers(self, Budgets)

    def of(self, stage: AnswerStage) -> float:
        """Return the budget of a stage, in seconds; infinite for one that is not watched."""
        seconds: float | None = getattr(self, f"{stage}_s")
        return math.inf if seconds is None else seconds
