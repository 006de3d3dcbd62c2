"""What a simulated caller says, and when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..events import CallState

BUSY: frozenset[CallState] = frozenset({"thinking", "tool", "speaking"})
"""States in which the agent has still something to say."""


@dataclass(frozen=True, slots=True)
class Perception:
    """What the caller has perceived since their last line began, or since the call did."""

    spoken_s: float = 0.0
    """Seconds of the agent's speech heard, of utterances that began after that line did."""
    silent_s: float = 0.0
    """Seconds since the agent was last heard; since the line's end if it was not."""
    heard: str = ""
    """The words heard in that time."""
    state: CallState = "idle"
    """What the call is doing."""


@dataclass(frozen=True, slots=True)
class Cue:
    """When to speak.

    Write your own: ``Cue("it offers a refund", lambda now: "refund" in now.heard)``.
    """

    description: str
    """What is waited for, to be read after "until"."""
    is_due: Callable[[Perception], bool]
    """Asked every 20 ms; must not wait."""


@dataclass(frozen=True, slots=True)
class Line:
    """Something the caller says."""

    text: str
    """The words; of a `sound`, what it is: "(coughs)"."""
    when: Cue
    """The moment to say it."""
    interrupts: bool = False
    """Whether it is meant to cut the agent; then the cut is measured and checked."""
    longest_gap_s: float | None = None
    """For what is meant to leave the agent speaking, such as "mhm" or a cough: the longest gap in
    seconds that it may make in the agent's speech, which is measured and checked then; cues go on
    as if nothing had been said.  None for a turn of the caller's."""
    sound: bytes | None = field(default=None, repr=False)
    """What is heard instead of the voice saying `text`: PCM16 little-endian mono 16 kHz."""
    deadline_s: float = 20.0
    """Longest wait for that moment, from the end of the caller's line before this one (from the
    start of the call for the first); after it the rehearsal ends and fails."""

    def __post_init__(self) -> None:
        """Check that it wants one thing.

        Raises:
            ValueError: It is meant to cut the agent and to leave it speaking.
        """
        if self.interrupts and self.longest_gap_s is not None:
            raise ValueError(
                f"Line({self.text!r}): interrupts=True is meant to cut the agent, longest_gap_s= "
                "to leave it speaking; give one of them"
            )

    @property
    def is_aside(self) -> bool:
        """Whether it is meant to leave the agent speaking."""
        return self.longest_gap_s is not None

    @property
    def shown(self) -> str:
        """The text as it is shown: words in quotation marks, "(coughs)" without."""
        return self.text if self.text.startswith("(") else f"“{self.text}”"


def agent_falls_silent(for_s: float = 0.6) -> Cue:
    """Wait until the agent has answered and is silent.

    Args:
        for_s: How long it must be silent; shorter pauses are part of its speech.
    """
    return Cue(
        "the agent has answered and falls silent",
        lambda now: now.spoken_s > 0 and now.silent_s >= for_s and now.state not in BUSY,
    )


def agent_has_spoken(seconds: float) -> Cue:
    """Wait until so much of the agent's answer was heard: the moment to talk over it.

    Args:
        seconds: Of speech at the caller's ear.
    """
    return Cue(
        f"the agent has spoken for {seconds:g} s",
        lambda now: now.spoken_s >= seconds,
    )
