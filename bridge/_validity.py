"""What the providers of language models refuse: checks on the messages of a chat.

The rules are those of OpenAI's chat completions and of Anthropic's messages API, as their error
messages state them: a call is answered by exactly one result right behind it, ids are of certain
characters and used once, roles alternate where they must, and no text is empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_OPENAI_ID = re.compile(r".{1,40}", re.DOTALL)
_ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

Message = Mapping[str, Any]


def chat_problems(messages: Sequence[Message]) -> list[str]:
    """Return why OpenAI's chat completions would refuse messages; empty if they would not.

    Args:
        messages: As ``ChatModel.stream`` takes them.
    """
    problems: list[str] = []
    waiting: list[str] = []
    seen: set[str] = set()
    for number, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                problems.append(f"{number}: a result without its call right before")
            else:
                waiting.remove(message["tool_call_id"])
        elif waiting:
            problems.append(f"{number}: {waiting} have no result")
            waiting = []
        if role not in ("system", "developer", "user", "assistant", "tool"):
            problems.append(f"{number}: the role {role!r}")
        calls = message.get("tool_calls", [])
        problems += [f"{number}: {problem}" for problem in _call_problems(calls, seen)]
        waiting += [call["id"] for call in calls]
        if not calls and not _is_said(message["content"]):
            problems.append(f"{number}: {role} without content")
    return [*problems, *(f"end: {id!r} has no result" for id in waiting)]


def _call_problems(calls: Sequence[Message], seen: set[str]) -> list[str]:
    problems: list[str] = []
    for call in calls:
        if call["id"] in seen or not _OPENAI_ID.fullmatch(call["id"]):
            problems.append(f"the id {call['id']!r} is used, empty or too long")
        seen.add(call["id"])
        if not _NAME.fullmatch(call["function"]["name"]):
            problems.append(f"the name {call['function']['name']!r}")
        if not _is_json_object(call["function"]["arguments"]):
            problems.append(f"the arguments {call['function']['arguments']!r}")
    return problems


def _is_json_object(text: str) -> bool:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        return isinstance(json.loads(text, parse_constant=refuse), dict)
    except ValueError:
        return False


def _is_said(content: object) -> bool:
    return isinstance(content, str) and bool(content.strip()) and _is_utf8(content)


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def anthropic_problems(messages: Sequence[Message]) -> list[str]:
    """Return why Anthropic's messages API would refuse messages; empty if it would not.

    Args:
        messages: With content as lists of blocks.
    """
    problems: list[str] = []
    seen: set[str] = set()
    waiting: list[str] = []
    for number, message in enumerate(messages):
        if message["role"] != ("user", "assistant")[number % 2]:
            problems.append(f"{number}: the role {message['role']!r}")
        blocks = message["content"]
        if not blocks:
            problems.append(f"{number}: no content")
        answered = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        if sorted(answered) != sorted(waiting):
            problems.append(f"{number}: results {answered} for calls {waiting}")
        if [b["type"] for b in blocks[: len(answered)]] != ["tool_result"] * len(answered):
            problems.append(f"{number}: results behind text")
        waiting = [b["id"] for b in blocks if b["type"] == "tool_use"]
        problems += [f"{number}: {text}" for b in blocks for text in _block_problems(b, seen)]
    return [*problems, *(f"end: {id!r} has no result" for id in waiting)]


def _block_problems(block: Message, seen: set[str]) -> list[str]:
    match block["type"]:
        case "text":
            return [] if _is_said(block["text"]) else ["empty text"]
        case "tool_result":
            return [] if _is_said(block["content"]) else ["empty result"]
        case "tool_use":
            problems = []
            if block["id"] in seen or not _ANTHROPIC_ID.fullmatch(block["id"]):
                problems.append(f"the id {block['id']!r} is used or not allowed")
            seen.add(block["id"])
            if not _NAME.fullmatch(block["name"]):
                problems.append(f"the name {block['name']!r}")
            if not isinstance(block["input"], dict):
                problems.append("input that is no object")
            return problems
    return [f"a block of type {block['type']!r}"]
