"""Control over the work of a call: verbs, states, receipts, and the tools that run."""

from .._verbs import STRENGTH, VERBS, PolicyKind, ToolOutcome, TurnPhase, Verb
from ._steps import Step, StepList, StepState, StepView
from ._work import StillRunning, Work, WorkRoom

__all__ = [
    "PolicyKind",
    "STRENGTH",
    "Step",
    "StepList",
    "StepState",
    "StepView",
    "StillRunning",
    "ToolOutcome",
    "TurnPhase",
    "VERBS",
    "Verb",
    "Work",
    "WorkRoom",
]
