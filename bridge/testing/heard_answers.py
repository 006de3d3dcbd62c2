"""What a caller has heard, a text for each answer."""

from __future__ import annotations

from ..call._call import Call


def heard_answers(call: Call) -> list[str]:
    """Return what the caller of a call has heard of each answer, in order, to the word."""
    heard: dict[int, str] = {}
    for entry in call.history.entries:
        if entry.role == "agent":
            heard[entry.answer] = heard.get(entry.answer, "") + entry.heard
    return [text for text in heard.values() if text.strip()]
