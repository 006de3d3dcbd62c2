"""The state of a call in words: what the page, the console and the demo show to people."""

from __future__ import annotations

STATE_WORDS = {
    "idle": "your turn",
    "listening": "listening",
    "thinking": "thinking",
    "speaking": "speaking",
    "tool": "at work",
    "waiting_permission": "asks permission",
    "waiting_input": "waits for you",
    "pausing": "pausing",
    "paused": "paused",
    "stopping": "stopping",
    "closed": "call ended",
}
"""Each state in words; the same as in ``bridge/page/control-texts.js``."""


def state_words(state: str) -> str:
    """Return a state in words; one that is not known, such as a newer server's, as it is."""
    return STATE_WORDS.get(state, state.replace("_", " "))
