"""Describes in one line what a verb would do now, given the running work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._verbs import Verb
from ..history._history import ToolEntry
from ._verb_actions import as_tools_see

if TYPE_CHECKING:
    from ..answers._answer import Answer
    from ..answers._call_answers import CallAnswers
    from ._verb_execution import Control

_TITLES: dict[Verb, str] = {
    "pause": "Pause",
    "resume": "Resume",
    "redirect": "Redirect",
    "cancel": "Cancel",
    "background": "Background",
    "barge_in": "Barge in",
    "emergency_stop": "Emergency stop",
    "shutdown": "Shut down",
}

_EFFECTS: dict[Verb, str] = {
    "pause": "speech stands still, and no further step starts",
    "resume": "everything continues where it stopped",
    "redirect": "drop this step and do what you type",
    "cancel": "the work ends",
    "background": "the work continues unheard, and its result comes later",
    "barge_in": "the agent falls silent and listens",
    "emergency_stop": "everything ends at once",
    "shutdown": "the work ends and the call is closed",
}

_CUT_TOO = "speech that is not interruptible is cut too"

_CUTS_NOTICES: dict[Verb, str] = {
    "redirect": _CUT_TOO,
    "cancel": _CUT_TOO,
    "barge_in": "speech that is not interruptible is heard to its end",
    "emergency_stop": _CUT_TOO,
    "shutdown": _CUT_TOO,
}
"""What happens to speech that is not interruptible, such as a legal notice.  It is protected from
the caller's voice, which is no decision.  A verb is somebody's decision, and a stop that left the
agent talking would be none.  The code that said it sees from its outcome that it was not heard, and
can say it again."""


def describe(
    control: Control, answers: CallAnswers, verb: Verb, reason: str, *, for_caller: bool = False
) -> str:
    """Return one line for a person.

    Args:
        control: The verbs of the call.
        answers: What is said in the call.
        verb: The verb.
        reason: Why it would do nothing; empty if it would do something.
        for_caller: Whether to leave out the names of tools that ask the operator.
    """
    title = _TITLES[verb]
    if reason:
        return over(verb, reason)
    parts = [_EFFECTS[verb]]
    answer = control.target()
    if answers.audio.has_notice and verb in _CUTS_NOTICES:
        parts.append(_CUTS_NOTICES[verb])
    if verb == "pause" and control.targets.works_in_background:
        parts.append("nothing starts in the background either")
    saved = _finished(answers, answer)
    if saved and verb in ("redirect", "cancel", "emergency_stop", "shutdown"):
        parts.append(f"{saved} result{'s are' if saved > 1 else ' is'} saved")
    if verb not in ("pause", "resume", "background"):
        told = as_tools_see(verb)
        works = (
            work
            for work in control.targets.tools_for(verb)
            if not (for_caller and work.for_operator)
        )
        parts += dict.fromkeys(f"{work.name} {work.consequence(told)}" for work in works)
    return f"{title}: {'; '.join(parts)}."


def over(verb: Verb, reason: str = "the call is over") -> str:
    """Return the line for a verb that would do nothing."""
    return f"{_TITLES[verb]}: nothing would happen; {reason}."


def _finished(answers: CallAnswers, answer: Answer | None) -> int:
    if answer is None:
        return 0
    began_s = answer.started_at_s
    return sum(
        isinstance(entry, ToolEntry) and entry.result is not None and entry.at_s >= began_s
        for entry in answers.history.entries
    )
