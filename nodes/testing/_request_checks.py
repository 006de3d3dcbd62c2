"""Checks a request for what the providers of language models refuse.

A server answers a breach of each rule with HTTP 400, in these words:

- OpenAI's chat completions: an assistant message with "tool_calls" must be followed by tool
  messages responding to each "tool_call_id"; messages with role "tool" must be a response to a
  preceding message with "tool_calls"; ids have at most 40 characters, and names match
  ``^[a-zA-Z0-9_-]{1,64}$``.
- Anthropic's messages API: at least one message is required, and its system prompt is none; text
  content blocks must be non-empty; ``tool_use`` ids must be unique, and so must the names of tools;
  "this model does not support assistant message prefill. The conversation must end with a user
  message" (Claude from Opus 4.6 on).
- Mistral's API: "Expected last role User or Tool (or Assistant with prefix True)".
- Templates of open models behind vLLM and llama.cpp (Qwen 3.5 and later): "System message must be
  at the beginning" (vllm-project/vllm#41114, ggml-org/llama.cpp#20733).

Two messages in a row from one side, and a chat that the assistant begins, are allowed here: OpenAI
accepts both, and ``as_anthropic`` converts them for Anthropic.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_OPENAI_ID = re.compile(r".{1,40}", re.DOTALL)
_ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

_SYSTEM = ("system", "developer")

ChatMessage = Mapping[str, Any]


def chat_problems(messages: Sequence[ChatMessage]) -> list[str]:
    """Return why OpenAI's chat completions would refuse messages; empty if they would not.

    Args:
        messages: As for ``ChatModel.stream``.
    """
    problems: list[str] = []
    waiting: list[str] = []
    seen: set[str] = set()
    for number, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                problems.append(f"{number}: a result without its call right before")
            else:
                waiting.remove(message["tool_call_id"])
        elif waiting:
            problems.append(f"{number}: {waiting} have no result")
            waiting = []
        if role not in ("system", "developer", "user", "assistant", "tool"):
            problems.append(f"{number}: the role {role!r}")
        calls = message.get("tool_calls") or []
        if calls and role != "assistant":
            problems.append(f"{number}: {role} with calls of tools")
        problems += [f"{number}: {problem}" for problem in _call_problems(calls, seen)]
        waiting += [str(call.get("id")) for call in calls]
        if not calls and not _is_said(message.get("content")):
            problems.append(f"{number}: {role} without content")
    return [*problems, *(f"end: {id!r} has no result" for id in waiting)]


def request_problems(
    messages: Sequence[ChatMessage], tools: Sequence[ChatMessage] = ()
) -> list[str]:
    """Return why some provider would refuse a request; empty if none would.

    Args:
        messages: As for ``ChatModel.stream``.
        tools: As for ``ChatModel.stream``.
    """
    problems = chat_problems(messages)
    roles = [message.get("role") for message in messages]
    if not set(roles) - set(_SYSTEM):
        problems.append(
            "there is nothing to answer: no message but a system prompt; to let the model speak "
            "first, give its node a note: node.context.add('Greet the caller.')"
        )
    elif roles[-1] == "assistant":
        problems.append(f"{len(roles) - 1}: the last message is the assistant's")
    late = [number for number, role in enumerate(roles) if number and role in _SYSTEM]
    problems += [f"{number}: a system message behind others" for number in late]
    return [*problems, *_tool_problems(tools)]


def _tool_problems(tools: Sequence[ChatMessage]) -> list[str]:
    problems: list[str] = []
    names: set[str] = set()
    for tool in tools:
        function = tool.get("function") or {}
        name = function.get("name")
        if tool.get("type") != "function" or not isinstance(name, str) or not _NAME.fullmatch(name):
            problems.append(f"the tool {name!r} of type {tool.get('type')!r}")
        elif name in names:
            problems.append(f"two tools are called {name!r}")
        else:
            names.add(name)
        if function.get("parameters", {"type": "object"}).get("type") != "object":
            problems.append(f"the parameters of the tool {name!r} are no object")
    return problems


def _call_problems(calls: Sequence[ChatMessage], seen: set[str]) -> list[str]:
    problems: list[str] = []
    for call in calls:
        id, function = call.get("id"), call.get("function") or {}
        name, arguments = function.get("name"), function.get("arguments")
        if not isinstance(id, str) or id in seen or not _OPENAI_ID.fullmatch(id):
            problems.append(f"the id {id!r} is used, empty or too long")
        seen.add(str(id))
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            problems.append(f"the name {name!r}")
        if not isinstance(arguments, str) or not _is_json_object(arguments):
            problems.append(f"the arguments {arguments!r}")
    return problems


def _is_json_object(text: str) -> bool:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        return isinstance(json.loads(text, parse_constant=refuse), dict)
    except ValueError:
        return False


def _is_said(content: object) -> bool:
    if isinstance(content, list | tuple):  # parts, such as texts and images
        return bool(content) and all(
            isinstance(part, Mapping) and (part.get("type") != "text" or _is_said(part.get("text")))
            for part in content
        )
    return isinstance(content, str) and bool(content.strip()) and _is_utf8(content)


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def anthropic_problems(messages: Sequence[ChatMessage]) -> list[str]:
    """Return why Anthropic's messages API would refuse messages; empty if it would not.

    Args:
        messages: The messages, with content as lists of blocks.
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


def _block_problems(block: ChatMessage, seen: set[str]) -> list[str]:
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
