"""The words of control: verbs, the phases of a turn, and what became of a tool."""

from __future__ import annotations

from typing import Literal, get_args

Verb = Literal[
    "pause",
    "resume",
    "redirect",
    "cancel",
    "background",
    "barge_in",
    "emergency_stop",
    "shutdown",
]
"""What can be done to the work of a call from outside."""

VERBS: tuple[Verb, ...] = get_args(Verb)

PauseTools = Literal["finish", "cancel", "detach"]
"""What a pause means to the tools of the turn: they go on, they end, or they become jobs."""


STRENGTH: dict[Verb, int] = {
    "shutdown": 7,
    "emergency_stop": 6,
    "cancel": 5,
    "redirect": 4,
    "background": 3,
    "pause": 2,
    "barge_in": 1,
    "resume": 0,
}
"""A stronger verb upgrades a weaker one that is under way; a weaker one is superseded."""

TurnPhase = Literal[
    "idle",
    "connect",
    "text",
    "thinking",
    "tool_call",
    "permission",
    "input",
    "tool",
    "between_tools",
    "speaking",
    "stopping",
]
"""What a turn is at.  ``tool_call``: the model writes the call of a tool; ``connect``: the model
was asked and has not answered yet."""

PolicyKind = Literal["cancel", "finish", "shield", "detach"]
"""What an interrupt means to a tool."""

ToolOutcome = Literal[
    "not_started",
    "cancelled_before_effect",
    "effect_unknown",
    "completed",
    "completed_after_interrupt",
    "backgrounded",
    "timed_out",
    "denied",
    "withdrawn",
]
"""What became of the call of a tool: one word."""

HandleOffer = Literal["auto", "full"]
"""Which verbs the page offers while the agent merely thinks or speaks; with a tool, a question, a
pause or a step of more than 2 s it offers all of them in either case."""
