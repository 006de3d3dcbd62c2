"""The text for the model for each outcome of a tool.

Rule: no outcome that may have had an effect reads as refused, and no interrupt reads as a "no" from
the user.
"""

from __future__ import annotations

from bargein.bridge.control import ToolOutcome

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
