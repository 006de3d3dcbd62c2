"""The route engine: typed events, chains of stages, and runs that can be cut at once."""

if __name__ == "routes":
    raise ImportError("routes is a folder of bargein: write `from bargein.routes import ...`")

from ._cancellation_token import InterruptToken as InterruptToken
from ._chain_runtime import RouteRuntime as RouteRuntime
from ._chain_start import ChainStart as ChainStart
from ._errors import BargeinError as BargeinError
from ._errors import CodeExitError as CodeExitError
from ._errors import Interrupted as Interrupted
from ._errors import PublishLoopError as PublishLoopError
from ._errors import RouteDefinitionError as RouteDefinitionError
from ._errors import RouteError as RouteError
from ._errors import SafeText as SafeText
from ._errors import ScopeLeakError as ScopeLeakError
from ._errors import StageTimeoutError as StageTimeoutError
from ._event_match import Predicate as Predicate
from ._events import Event as Event
from ._events import alias_of as alias_of
from ._events import class_of as class_of
from ._events import needs_no_validation as needs_no_validation
from ._events import register as register
from ._message import Message as Message
from ._pausable_deadlines import Clock as Clock
from ._pausable_deadlines import Deadline as Deadline
from ._route import Route as Route
from ._router import Router as Router
from ._router import open_router as open_router
from ._rules import Overlap as Overlap
from ._run import Run as Run
from ._run_context import PauseGate as PauseGate
from ._run_context import current_run as current_run
from ._run_context import run_in as run_in
from ._run_context import until_resumed as until_resumed
from ._run_outcome import Decision as Decision
from ._run_outcome import Interruption as Interruption
from ._run_outcome import Outcome as Outcome
from ._run_outcome import Phase as Phase
from ._run_outcome import RouterStatistics as RouterStatistics
from ._run_outcome import RouteStatistics as RouteStatistics
from ._run_outcome import RouteVerdict as RouteVerdict
from ._timers import start_timer_task as start_timer_task

__all__ = [
    "BargeinError",
    "ChainStart",
    "Clock",
    "CodeExitError",
    "Deadline",
    "Decision",
    "Event",
    "InterruptToken",
    "Interrupted",
    "Interruption",
    "Message",
    "Outcome",
    "Overlap",
    "PauseGate",
    "Phase",
    "Predicate",
    "PublishLoopError",
    "Route",
    "RouteDefinitionError",
    "RouteError",
    "RouteRuntime",
    "RouteStatistics",
    "RouteVerdict",
    "Router",
    "RouterStatistics",
    "Run",
    "SafeText",
    "ScopeLeakError",
    "StageTimeoutError",
    "alias_of",
    "class_of",
    "current_run",
    "needs_no_validation",
    "open_router",
    "register",
    "run_in",
    "start_timer_task",
    "until_resumed",
]
