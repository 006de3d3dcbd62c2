"""Control over the work of a call: verbs, states, receipts, and the running tools."""

from typing import TYPE_CHECKING

from bargein.routes.lazy_imports import lazy_imports

from .._verbs import STRENGTH, VERBS, AnswerPhase, JobEnd, PolicyKind, ToolOutcome, Verb
from ..answers._background_answers import BackgroundAnswer
from ..answers._steps import Step, StepList, StepState, StepView
from ..context._running_tools import RunningTools, StillRunning, Work
from ._questions import QuestionAnswer
from ._usage_meter import ActiveClock, CapReachedError, Caps, Meter, current_meter

if TYPE_CHECKING:
    from ..languages import AnswerPhrases
else:  # most programs ask nothing
    __getattr__ = lazy_imports(__name__, {"AnswerPhrases": "..languages"})

__all__ = [
    "ActiveClock",
    "AnswerPhase",
    "AnswerPhrases",
    "BackgroundAnswer",
    "CapReachedError",
    "Caps",
    "JobEnd",
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
