"""Shortens a chat that is too long for its model, so that the question can be asked once more.

Long results of tools and long texts go first, and then the oldest messages; the system prompt and
the newest words of the user stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bargein.bridge.history import last_messages

from ._excerpt import bounded

ChatMessage = dict[str, Any]

MOST_OF_MESSAGE = (800, 800)
"""How many characters of a long message's beginning and end stay."""


def shortened(chat: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return a chat of at most half the length, where that is possible.

    Args:
        chat: Messages in the format of OpenAI's chat completions.
    """
    most = _length(chat) // 2
    first = 1 if chat and chat[0].get("role") == "system" else 0
    head, rest = list(chat[:first]), [*chat[first:]]
    last_user = max((n for n, m in enumerate(rest) if m.get("role") == "user"), default=-1)
    for number, message in enumerate(rest):
        content = message.get("content")
        if isinstance(content, str) and number != last_user:
            rest[number] = {**message, "content": bounded(content, MOST_OF_MESSAGE)}
    kept = len(rest)
    while kept > len(rest) - last_user and _length([*head, *rest[-kept:]]) > most:
        kept -= 1
    return [*head, *last_messages(rest, max(kept, 1))]


def _length(chat: Sequence[ChatMessage]) -> int:
    return sum(len(str(message)) for message in chat)
