"""What a model reads about an answer that was cut, and about a tool without a result text."""

from __future__ import annotations

from .._verbs import ToolOutcome
from ._entries import InterruptionRecord, ToolEntry

OUTCOME_WORDS: dict[ToolOutcome, str] = {
    "not_started": "Not started: it was interrupted before it began. Nothing was done.",
    "cancelled_before_effect": "Cancelled before it had any effect. Nothing was changed.",
    "effect_unknown": ("Interrupted: it may have partially executed; verify before retrying."),
    "completed": "Completed; it returned nothing.",
    "completed_after_interrupt": "Completed after the interruption; it returned nothing.",
    "backgrounded": "Moved to the background; its result will come later.",
    "timed_out": "Timed out: it may have partially executed; verify before retrying.",
    "denied": "Not run: the user denied permission.",
    "withdrawn": (
        "Not run: the question for permission was withdrawn by an interruption. The user said "
        "neither yes nor no."
    ),
}
"""Used if a tool's result has no text."""

_QUOTED_CHARS = 300
"""How many characters of the user's words a marker repeats; the full text is next to it."""


def pending_words(entry: ToolEntry) -> str:
    """Return what a model reads about a tool that has no result yet."""
    if entry.mark == "called":
        return "It has not begun yet; its result will come later. Do not call it again."
    return "It is still running; its result will come later. Do not call it again."


def marker_text(record: InterruptionRecord, was: str, now: str) -> str:
    """Return what a model reads about an answer that was cut; empty for nothing.

    A barge-in adds no text, because the heard text says it all; nor does a pause.

    Args:
        was: What the user asked for before.
        now: What the user said next; empty for nothing yet.
    """
    if record.verb in ("barge_in", "pause", "resume"):
        return ""
    lines = ["From the system; the user did not say this.", _what_happened(record)]
    if record.verb != "background":
        lines += _what_is_left(record)
    if record.verb == "redirect":
        lines.append(f"was: {_short(was)} now: {_short(now)}")
    lines.append(_DIRECTIVE_WORDS[record.directive])
    return "\n".join(line for line in lines if line)


_DIRECTIVE_WORDS = {
    "ask": "Ask what to do instead; do not retry or plan a work-around.",
    "continue": "Continue with the new instruction.",
    "": "",
}


def _what_happened(record: InterruptionRecord) -> str:
    where = f" at step {record.step}" if record.step else ""
    when = f"after {record.elapsed_s:.1f} s{where}, while {record.phase.replace('_', ' ')}"
    if record.verb == "background":
        return f"This answer was moved to the background {when}; its result will come later."
    return f"This answer was interrupted ({record.verb}) {when}."


def _what_is_left(record: InterruptionRecord) -> list[str]:
    lines = [] if record.heard.strip() else ["Nothing of it was heard."]
    if record.tools:
        said = "; ".join(f"{tool.name}: {tool.outcome or 'still running'}" for tool in record.tools)
        lines.append(f"Its tools: {said}.")
    return lines


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _QUOTED_CHARS else text[:_QUOTED_CHARS] + "…"
