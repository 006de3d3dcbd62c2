"""Parses a person's yes or no to a permission question."""

from __future__ import annotations

ANSWERS = {
    "y": (True, False),
    "yes": (True, False),
    "n": (False, False),
    "no": (False, False),
    "a": (True, True),
    "always": (True, True),
}
"""The words that answer: each with whether the tool may run, and whether that is remembered."""


def permission_answer(entry: str) -> tuple[bool, bool] | None:
    """Return whether the tool may run, and whether to remember that.

    Args:
        entry: What was typed.

    Returns:
        ``None`` if the entry is not an answer.
    """
    return ANSWERS.get(entry.strip().lower())
