"""Control over the work of a call: verbs, states, receipts, and the running tools."""

from .._verbs import STRENGTH, VERBS, AnswerPhase, PolicyKind, ToolOutcome, Verb
from ._active_clock import ActiveClock
from ._answer_as_job import BackgroundAnswer
from ._choice_phrases import AnswerPhrases
from ._questions import QuestionAnswer
from ._running_tools import RunningTools, StillRunning, Work
from ._steps import Step, StepList, StepState, StepView
from ._usage_caps import Caps
from ._usage_meter import CapReachedError, Meter, current_meter

__all__ = [
    "ActiveClock",
    "AnswerPhase",
    "AnswerPhrases",
    "BackgroundAnswer",
    "CapReachedError",
    "Caps",
    "Meter",
    "PolicyKind",
    "QuestionAnswer",
    "RunningTools",
    "STRENGTH",
    "Step",
    "StepList",
    "StepState",
    "StepView",
    "StillRunning",
    "ToolOutcome",
    "VERBS",
    "Verb",
    "Work",
    "current_meter",
]
