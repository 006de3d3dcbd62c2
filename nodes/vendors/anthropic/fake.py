"""A fake of Anthropic's messages API, which thinks and calls tools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bargein.nodes.fakes import THOUGHTS, FakeChat, FaultStage, StreamedEvent, signature

__all__ = ["FakeAnthropic"]


def _error(kind: str, message: str) -> Mapping[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


class FakeAnthropic(FakeChat):
    """``/v1/messages``; with ``thinking`` it thinks before its calls, and wants its thoughts back.

    Its own thoughts come in pieces, and one of them is encrypted.
    """

    error = _error("overloaded_error", "no")
    key = "^(x-api-key|authorization):"
    """The SDK 2.12 sends the key as a bearer token, earlier ones as x-api-key."""
    no_key = _error("authentication_error", "x-api-key header is required")

    def refusal(self, head: str) -> tuple[int, Mapping[str, Any]] | None:
        """Refuse a request without a key, or without a version."""
        has_version = "\r\nanthropic-version:" in head.lower()
        no_version = _error("invalid_request_error", "anthropic-version is required")
        return self.refusal_without_key(head) or (None if has_version else (400, no_version))

    def refusal_of(self, body: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]] | None:
        """Refuse a turn that does not begin with thoughts, and thoughts that were changed."""
        problem = _problem(body)
        return None if problem is None else (400, _error("invalid_request_error", problem))

    def call_events(self, body: Mapping[str, Any]) -> Sequence[StreamedEvent]:
        """Return the thoughts and calls, if the newest message is the user's."""
        if not self._calls or not body.get("tools") or _has_results(body["messages"][-1]):
            return ()
        usage = {"input_tokens": 7, "output_tokens": 1}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
        blocks = [*(_thoughts() if _is_thinking(body) else ()), *self._call_blocks()]
        events: list[StreamedEvent] = [
            {"type": "message_start", "message": {**message, "model": "fake", "usage": usage}}
        ]
        for index, (block, deltas) in enumerate(blocks):
            events += [{"type": "content_block_start", "index": index, "content_block": block}]
            events += [
                {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
            ]
            events += [{"type": "content_block_stop", "index": index}]
        delta = {"stop_reason": "tool_use", "stop_sequence": None}
        end = {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}}
        return [*events, end, {"type": "message_stop"}]

    def _call_blocks(self) -> Iterator[tuple[Mapping[str, Any], list[Mapping[str, Any]]]]:
        for number, (name, arguments) in enumerate(self._calls.items()):
            id = f"toolu_{len(self.requests)}_{number}"
            raw = json.dumps(arguments)
            parts = ("", raw[:3], raw[3:])
            yield (
                {"type": "tool_use", "id": id, "name": name, "input": {}},
                [{"type": "input_json_delta", "partial_json": part} for part in parts],
            )

    def events(self, words: Sequence[str]) -> Sequence[tuple[StreamedEvent, FaultStage]]:
        """Return a message with one block of text."""
        usage = {"input_tokens": 7, "output_tokens": 1}
        message: dict[str, Any] = {
            **{"id": "msg_1", "type": "message", "role": "assistant", "model": "fake"},
            **{"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage},
        }
        block = {"type": "text", "text": ""}
        deltas: list[tuple[StreamedEvent, FaultStage]] = [
            (
                {
                    **{"type": "content_block_delta", "index": 0},
                    "delta": {"type": "text_delta", "text": word},
                },
                "middle" if n else "first",
            )
            for n, word in enumerate(words)
        ]
        delta = {"stop_reason": "end_turn", "stop_sequence": None}
        return [
            ({"type": "message_start", "message": message}, "after"),
            ({"type": "content_block_start", "index": 0, "content_block": block}, "after"),
            ({"type": "ping"}, "after"),
            *deltas,
            ({"type": "content_block_stop", "index": 0}, "after"),
            (
                {"type": "message_delta", "delta": delta, "usage": {"output_tokens": len(words)}},
                "last",
            ),
            ({"type": "message_stop"}, "after"),
        ]


def _thoughts() -> list[tuple[Mapping[str, Any], list[Mapping[str, Any]]]]:
    signed = signature("".join(THOUGHTS))
    return [
        (
            {"type": "thinking", "thinking": "", "signature": ""},
            [
                *({"type": "thinking_delta", "thinking": part} for part in THOUGHTS),
                {"type": "signature_delta", "signature": signed[:9]},
                {"type": "signature_delta", "signature": signed[9:]},
            ],
        ),
        ({"type": "redacted_thinking", "data": signature("secret")}, []),
    ]


def _is_thinking(body: Mapping[str, Any]) -> bool:
    return bool((body.get("thinking") or {}).get("type") == "enabled")


def _blocks(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the blocks of a message, which may be a mere text."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _has_results(message: Mapping[str, Any]) -> bool:
    return any(block["type"] == "tool_result" for block in _blocks(message))


def _problem(body: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the thoughts of a request."""
    messages = body["messages"]
    for number, message in enumerate(messages):
        for place, block in enumerate(_blocks(message)):
            if block["type"] == "thinking" and block["signature"] != signature(block["thinking"]):
                where = f"messages.{number}.content.{place}"
                return (
                    f"{where}: `thinking` blocks in the latest assistant message cannot be modified"
                )
    first = len(messages)
    while first > 1 and _has_results(messages[first - 1]):
        first -= 2
    if not _is_thinking(body) or first == len(messages):
        return None
    found = _blocks(messages[first])[0]["type"]
    if found in ("thinking", "redacted_thinking"):
        return None
    wanted = f"Expected `thinking` or `redacted_thinking`, but found `{found}`"
    return (
        f"messages.{first}.content.0.type: {wanted}. When `thinking` is enabled, a final "
        "`assistant` message must start with a thinking block."
    )
