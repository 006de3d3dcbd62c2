"""The vocabulary of control: verbs, phases of an answer, outcomes of a tool."""

from __future__ import annotations

from typing import Literal, get_args

Verb = Literal[
    "resume",
    "barge_in",
    "pause",
    "background",
    "redirect",
    "cancel",
    "emergency_stop",
    "shutdown",
]
"""What can be done to the work of a call from outside, the weakest first; all else of a verb is in
its file in ``bridge/control/verbs``."""

VERBS: tuple[Verb, ...] = get_args(Verb)

STRENGTH: dict[Verb, int] = {verb: strength for strength, verb in enumerate(VERBS)}
"""A stronger verb replaces a weaker one that is still settling; a weaker one is superseded."""

WITH_WORDS: frozenset[Verb] = frozenset({"redirect"})
"""Verbs that are nothing without words of the caller; the row of each says ``text="text"``."""

PauseTools = Literal["finish", "cancel", "detach"]
"""What a pause does to the tools of the answer: they continue, end, or become jobs."""


AnswerPhase = Literal[
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
"""What an answer is doing.  ``tool_call``: the model writes a tool call; ``connect``: the model was
asked and has not answered yet."""

PolicyKind = Literal["cancel", "finish", "shield", "detach"]
"""What an interrupt does to a tool."""

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
"""The outcome of a tool call, in one word."""

JobEnd = Literal["completed", "failed", "stopped", "capped", "timed_out"]
"""How a job in the background ended: by itself, with a result or an error of its own; because
somebody stopped it, by a verb or its handle; at one of its caps; or at its tool's time limit."""

HandleOffer = Literal["auto", "full"]
"""Which verbs the page offers while the agent only thinks or speaks; during a tool, a question, a
pause or a step of more than 2 s, it offers all of them either way."""
