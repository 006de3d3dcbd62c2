"""Understands the yes or no of a person who is asked whether a tool may run."""

from __future__ import annotations

ANSWERS = {
    "y": (True, False),
    "yes": (True, False),
    "n": (False, False),
    "no": (False, False),
    "a": (True, True),
    "always": (True, True),
}
"""What answers a question: whether the tool may run, and whether that holds from now on."""


def permission_answer(entry: str) -> tuple[bool, bool] | None:
    """Return what an entry answers: whether the tool may run, and whether from now on.

    Args:
        entry: What was typed.

    Returns:
        None if the entry is no answer.
    """
    return ANSWERS.get(entry.strip().lower())
