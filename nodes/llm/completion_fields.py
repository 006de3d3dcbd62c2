"""A provider's own fields in chat completions: which they are, and where they go back to.

- Everything in a tool call that OpenAI's calls do not have: ``extra_content`` (Gemini, "Thought
  signatures": a request without them is refused), ``provider_specific_fields`` (LiteLLM);
- what a message says about its thoughts: ``reasoning_content`` (DeepSeek and Kimi refuse a request
  of a tool loop without it), ``reasoning_details`` (OpenRouter, MiniMax), ``thinking_blocks``
  (LiteLLM).  It goes back with the first call of the message.

Other fields of a message are left out: several servers refuse those that they send themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bargein.bridge.history import extra_of
from bargein.nodes.services import object_of

Fields = Mapping[str, Any]

_OF_CALLS = frozenset({"index", "id", "type", "function", "name", "arguments"})
_OF_MESSAGES = re.compile(r"(reason|think|thought)\w*|extra_content|provider_specific_fields")
_SAME_THOUGHTS = ("reasoning_details", "reasoning_content", "reasoning")
"""Some servers send the same thoughts under several names; the first of them says most."""


def call_fields(piece: Fields, function: Fields) -> dict[str, Any]:
    """Return the own fields in a piece of a tool call.

    Args:
        piece: The piece.
        function: Its function, which is the piece itself if that has none.
    """
    found = {"call": _others(piece), "function": {} if function is piece else _others(function)}
    return {where: fields for where, fields in found.items() if fields}


def _others(piece: Fields) -> dict[str, Any]:
    return {n: v for n, v in piece.items() if n not in _OF_CALLS and v not in (None, "", {}, [])}


def message_fields(delta: Fields) -> dict[str, Any]:
    return {n: v for n, v in delta.items() if v and _OF_MESSAGES.fullmatch(n)}


def is_thought(delta: Fields) -> bool:
    """Whether Gemini marks a piece of text as a thought."""
    return object_of(object_of(delta.get("extra_content")).get("google")).get("thought") is True


def kept_fields(id: str, of_call: Fields, of_message: Fields) -> dict[str, Any]:
    """Return the own fields of a call as a history keeps them; empty if there are none.

    Args:
        id: The id that the provider gave the call.
        of_call: Those of the call, as `call_fields` returns them.
        of_message: Those of its message; empty unless it is the message's first call.
    """
    found = {**of_call, **({"message": dict(of_message)} if of_message else {})}
    return {"id": id, **found} if found else {}


def with_own_fields(messages: Sequence[Fields], provider: str) -> list[Fields]:
    """Return a chat with the own fields of a provider where they were; those of others stay out."""
    return [_returned(message, provider) for message in messages]


def _returned(message: Fields, provider: str) -> Fields:
    calls = message.get("tool_calls")
    if not isinstance(calls, Sequence) or not any(extra_of(call, provider) for call in calls):
        return message
    of_message: dict[str, Any] = {}
    whole: list[Fields] = []
    for call in calls:
        extra = extra_of(call, provider)
        function = {**object_of(extra.get("function")), **object_of(call.get("function"))}
        whole.append({**object_of(extra.get("call")), **call, "function": function})
        told = object_of(extra.get("message"))
        of_message |= _with_id(told, str(extra.get("id")), call.get("id"))
    for name in [name for name in _SAME_THOUGHTS if name in of_message][1:]:
        del of_message[name]
    return {**of_message, **message, "tool_calls": whole}


def _with_id(value: Any, old: str, new: object) -> Any:
    """Return own fields in which a call has the id that it has in the history."""
    if old == new or not old:
        return value
    if isinstance(value, Mapping):
        return {
            name: new if name == "id" and item == old else _with_id(item, old, new)
            for name, item in value.items()
        }
    return [_with_id(item, old, new) for item in value] if isinstance(value, list) else value
