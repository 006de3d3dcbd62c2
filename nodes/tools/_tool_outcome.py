"""The outcome of a tool: one word, and the text for the model.

Rules, in this order:
1. What the tool concluded itself counts.
2. A result counts, even if it came after an interrupt.
3. The tool's own error is reported; inside the commit section the effect is unknown.
4. A tool that was cancelled before its first step did not start.
5. A tool that took too long timed out.
6. A cancelled tool had no effect if it declares that it has none, or none before its commit
   section, which it never entered.
7. The effect of any other cancelled tool is unknown.

No outcome that may have had an effect reads as refused, and no interrupt reads as a "no" from the
user.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bargein.bridge.control import CapReachedError, ToolOutcome
from bargein.routes import CodeExitError
from bargein.routes.error_containment import text_of

from ._errors import ToolError, WorkerCallError

if TYPE_CHECKING:
    from ._tool_body import ToolBody

WORDS: dict[ToolOutcome, str] = {
    "not_started": "It was not started: the turn was interrupted before it began.",
    "cancelled_before_effect": "It was cancelled by an interruption before it had any effect.",
    "effect_unknown": (
        "It was cut off by an interruption and may have partially executed; verify before retrying."
    ),
    "completed": "",
    "completed_after_interrupt": (
        "It had been asked to stop, and completed all the same: do not run it again."
    ),
    "backgrounded": "It was moved to the background; its result will come later.",
    "timed_out": (
        "It took too long and was stopped; it may have partially executed; verify before retrying."
    ),
    "denied": "The user denied permission: it was not run. Do not try to get around that.",
    "withdrawn": (
        "It was not run: the turn was interrupted before anybody answered whether it may run. "
        "The user said neither yes nor no."
    ),
}

NEVER = "It is not permitted here and was not run. Do not call it again."
"""The text for a tool with the permission ``never``; nobody was asked."""


def words_for(outcome: ToolOutcome, content: str = "") -> str:
    """Return the text for the model.

    Args:
        outcome: The outcome of the tool.
        content: The tool's own text; comes first if it completed.
    """
    words = WORDS[outcome]
    if not content:
        return words
    if not words:
        return content
    pair = (content, words) if outcome == "completed_after_interrupt" else (words, content)
    return "\n".join(pair)


@dataclass(frozen=True, slots=True)
class FinalOutcome:
    """The outcome of a tool, and the text for the model."""

    outcome: ToolOutcome
    content: str
    error: bool = False


def plain(outcome: ToolOutcome) -> FinalOutcome:
    """Return an outcome with its standard text."""
    return FinalOutcome(outcome, words_for(outcome))


def settle(body: ToolBody, *, is_cut: bool, interrupted: bool, timed_out: bool) -> FinalOutcome:
    """Return the outcome of a tool whose body has ended or was abandoned.

    Args:
        body: The body.
        is_cut: Whether it was cancelled.
        interrupted: Whether an interrupt asked it to stop.
        timed_out: Whether it was cancelled because it took too long.
    """
    said = body.conclusion
    if said is not None and (said.outcome is not None or body.value is not None):
        outcome = _completed(said.outcome or "completed", interrupted)
        content = said.content if said.is_worded else words_for(outcome, said.content)
        return FinalOutcome(outcome, content, said.error)
    if body.value is not None:
        outcome = _completed("completed", interrupted)
        return FinalOutcome(outcome, words_for(outcome, body.value))
    if body.error is not None and not is_cut:
        return _failed(body, body.error, interrupted)
    outcome = _when_cut(body, timed_out)
    content = "" if said is None else said.content
    error = timed_out if said is None else said.error
    return FinalOutcome(outcome, words_for(outcome, content), error)


def _completed(outcome: ToolOutcome, interrupted: bool) -> ToolOutcome:
    return "completed_after_interrupt" if interrupted and outcome == "completed" else outcome


def _failed(body: ToolBody, error: Exception, interrupted: bool) -> FinalOutcome:
    text = error_for_model(error)
    if body.commit.stage in ("open", "broken"):
        return FinalOutcome("effect_unknown", f"{text}\n{FAILED_INSIDE}", error=True)
    return FinalOutcome(_completed("completed", interrupted), text, error=True)


def error_for_model(error: Exception) -> str:
    """Return what a model may read of a tool's exception: a `ToolError`'s text, else the class.

    The class of a subclass comes before its text.
    """
    raised = error.error if isinstance(error, CodeExitError) else error
    name, text = type(raised).__name__, text_of(error)
    if isinstance(error, WorkerCallError):
        name, text = error.class_name, error.text if error.is_for_model else ""
    elif not isinstance(error, ToolError | CapReachedError):
        return name
    if not text:
        return name
    return text if name == ToolError.__name__ else f"{name}: {text}"


FAILED_INSIDE = "It failed amid its effect and may have partially executed; verify before retrying."


def _when_cut(body: ToolBody, timed_out: bool) -> ToolOutcome:
    if body.begun_at_s is None:
        return "not_started"
    if timed_out:
        return "timed_out"
    tool = body.tool
    refused = body.commit.stage == "refused"
    if tool.read_only or refused or (tool.commits and not body.commit.is_entered):
        return "cancelled_before_effect"
    return "effect_unknown"
