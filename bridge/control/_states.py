"""The states of a call as one literal table: what each verb does in each state, and what follows.

An agent whose voice is held by anything but the verb pause is still ``speaking``: a hold is no
state, as the answer goes on, and a turn that is only considered leaves no trace in the states.

The diagram of the docs is made of it by ``diagram()``.
"""

from __future__ import annotations

from typing import get_args

from ..events import CallState
from ._verbs import VERBS, Verb

STATES: tuple[CallState, ...] = get_args(CallState)

_IDLE = "-nothing is running"
_PLAYS = "-nothing is paused"
_ENDS = "-the work is being stopped"
_OVER = "-the call is over"

# A cell is the state that follows at once, or "-" and the reason why nothing is done.
_AT_REST: dict[Verb, str] = {
    "pause": _IDLE,
    "resume": _PLAYS,
    "redirect": "thinking",
    "cancel": _IDLE,
    "background": _IDLE,
    "barge_in": _IDLE,
    "emergency_stop": _IDLE,
    "shutdown": "stopping",
}
_AT_WORK: dict[Verb, str] = {
    "pause": "pausing",
    "resume": _PLAYS,
    "redirect": "thinking",
    "cancel": "stopping",
    "background": "idle",
    "barge_in": "listening",
    "emergency_stop": "stopping",
    "shutdown": "stopping",
}
_HELD: dict[Verb, str] = {**_AT_WORK, "resume": "thinking"}
_STOPPING: dict[Verb, str] = {
    "pause": _ENDS,
    "resume": _ENDS,
    "redirect": "thinking",
    "cancel": "stopping",
    "background": _ENDS,
    "barge_in": _ENDS,
    "emergency_stop": "stopping",
    "shutdown": "stopping",
}

MACHINE: dict[CallState, dict[Verb, str]] = {
    "idle": _AT_REST,
    "listening": _AT_REST,
    "thinking": _AT_WORK,
    "speaking": _AT_WORK,
    "tool": _AT_WORK,
    "waiting_permission": _AT_WORK,
    "waiting_input": _AT_WORK,
    "pausing": _HELD,
    "paused": {**_HELD, "pause": "paused"},
    "stopping": _STOPPING,
    "closed": dict.fromkeys(VERBS, _OVER),
}
"""What a verb does in a state; a weaker verb than the one under way is superseded before that."""

_WORKS: tuple[CallState, ...] = (
    "thinking",
    "speaking",
    "tool",
    "waiting_permission",
    "waiting_input",
)

STEPS: dict[CallState, frozenset[str]] = {
    "idle": frozenset((*_WORKS, "listening", "stopping", "closed")),
    "listening": frozenset((*_WORKS, "idle", "stopping", "closed")),
    **{
        state: frozenset((*_WORKS, "idle", "listening", "pausing", "paused", "stopping", "closed"))
        for state in _WORKS
    },
    "pausing": frozenset((*_WORKS, "idle", "listening", "paused", "stopping", "closed")),
    "paused": frozenset((*_WORKS, "idle", "listening", "pausing", "stopping", "closed")),
    "stopping": frozenset((*_WORKS, "idle", "listening", "closed")),
    "closed": frozenset(),
}
"""Which state may follow which, by whatever happens."""


class IllegalStep(Exception):
    """A step that the table of states does not have; a fault of ours."""

    def __init__(self, state: str, to: str, verb: str = "") -> None:
        by = f" by {verb!r}" if verb else ""
        super().__init__(f"no step from state {state!r} to {to!r}{by}")
        self.state = state
        self.to = to
        self.verb = verb


def refusal(state: CallState, verb: Verb) -> str:
    """Return why a verb does nothing in a state; empty if it does something.

    Args:
        state: The state of the call.
        verb: The verb.
    """
    cell = MACHINE[state][verb]
    return cell[1:] if cell.startswith("-") else ""


def check_step(state: CallState, to: CallState, verb: str = "") -> None:
    """Make sure that one state may follow another.

    Args:
        state: The state before.
        to: The state after.
        verb: The verb under way, for the error.

    Raises:
        IllegalStep: It may not.
    """
    if to not in STEPS[state]:
        raise IllegalStep(state, to, verb)


def diagram() -> str:
    """Return the table as a Mermaid state diagram: the steps that verbs make."""
    lines = ["stateDiagram-v2", "    [*] --> idle"]
    for state in STATES:
        by_next: dict[str, list[str]] = {}
        for verb in VERBS:
            cell = MACHINE[state][verb]
            if not cell.startswith("-") and cell != state:
                by_next.setdefault(cell, []).append(verb)
        lines += [f"    {state} --> {to}: {', '.join(verbs)}" for to, verbs in by_next.items()]
    return "\n".join(
        [*lines, "    stopping --> idle", "    stopping --> closed", "    closed --> [*]"]
    )
