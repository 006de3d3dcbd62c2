"""How a run ends, and what is told about one that was cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ._message import Message

Outcome = Literal[
    "completed",
    "interrupted",
    "redirected",
    "backgrounded",
    "capped",
    "failed",
    "disconnected",
    "shutdown",
]
"""How a run ended: one word."""

Phase = Literal["waiting", "running", "delivered"]
"""Where a run was when it was cut: not begun; running; or finished, with output outstanding."""


@dataclass(frozen=True, slots=True)
class Interruption:
    """What is known about a run that was cut; immutable."""

    run: int
    """The number of the run within its router."""
    route: str
    """The chain as it was written."""
    source: str
    """The bridge whose route it is."""
    cause: Message | None
    """The message that cut it, or ``None`` if no message did."""
    reason: str
    """The rule that cut it, for people: ``interrupt_on(UserStartedSpeaking)``."""
    phase: Phase
    at_s: float
    """When it was cut, in seconds of trio's clock."""
    elapsed_s: float
    """Seconds from the run's start to the cut."""
    generated: str = ""
    """All that the answer had generated; filled in for handlers of a call's routes."""
    heard: str = ""
    """What was heard of it; always a prefix."""
    tools: tuple[Any, ...] = ()
    """The tools of the answer, each with its ``name`` and its ``outcome``, ``None`` while it goes
    on."""


Verdict = Literal[
    "matched", "gated", "idle", "cut", "paused", "resumed", "suspended", "queued", "dropped"
]
"""What a route did with an event: ``idle`` means that nothing was running, ``gated`` that a rule
kept it from acting."""


class Decision(NamedTuple):
    """One line of a route's answer to "why?"."""

    at_s: float
    event: str
    """The alias of the event."""
    message: int
    """The number of the message."""
    verdict: Verdict
    why: str
    """The rule that decided, and its values."""


@dataclass(frozen=True, slots=True)
class RouterStatistics:
    """What a router had done when it was asked."""

    published: int = 0
    stale: int = 0
    """Messages of cut runs that were dropped when they were published."""


@dataclass(slots=True)
class RouteStatistics:
    """What a chain has done so far."""

    started: int = 0
    cut: int = 0
    failed: int = 0
    """Runs that failed, and triggers whose sync stages did."""
    dropped: int = 0
    """Triggers that began no run: by overlap, by a full queue, or because they were stale."""
    abandoned: int = 0
    """Runs that did not unwind in time and no longer hold up the chain."""
