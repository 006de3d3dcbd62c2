"""Fakes of chat models that want fields of their own back with their calls of tools.

By the vendors' pages "Thought signatures" (Google), "Thinking mode: tool calls" (DeepSeek) and
"Preserving reasoning" (OpenRouter): a request that continues a turn without them is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ._anthropic import THOUGHTS, signature
from ._fake_chat import FakeOpenAIChat
from ._fault import Fault

SKIP = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""What stands for the signature of another model's call."""


class FakeGeminiChat(FakeOpenAIChat):
    """Gemini's ``/chat/completions``: the first call of each message is signed."""

    error = {"error": {"code": 503, "message": "no", "status": "UNAVAILABLE"}}  # noqa: RUF012

    def refusal(self, head: str) -> tuple[int, Any] | None:
        """Refuse a request without a key, or to another path."""
        path = head.partition("\r\n")[0].split()[1].partition("?")[0]
        if not path.endswith("/chat/completions"):
            return 404, [{"error": {"code": 404, "message": "no", "status": "NOT_FOUND"}}]
        if "\r\nauthorization: bearer " in head.lower():
            return None
        told = "Missing or invalid Authorization header."
        return 401, [{"error": {"code": 401, "message": told, "status": "UNAUTHENTICATED"}}]

    def own_fields(self, index: int) -> Mapping[str, Any]:
        """Return the signature of the first call."""
        signed = {"google": {"thought_signature": signature("gemini")}}
        return {} if index else {"extra_content": signed}

    def refusal_of(self, body: Mapping[str, Any]) -> tuple[int, Any] | None:
        """Refuse a message of the turn whose first call is not signed."""
        for number, message in _with_calls(body):
            first = message["tool_calls"][0]
            extra = (first.get("extra_content") or {}).get("google") or {}
            if extra.get("thought_signature") in (signature("gemini"), *SKIP):
                continue
            told = (
                "Function call is missing a thought_signature in functionCall parts. Additional "
                f"data, function call `{first['function']['name']}`, position {number}."
            )
            return 400, [{"error": {"code": 400, "message": told, "status": "INVALID_ARGUMENT"}}]
        return None


class FakeReasoningChat(FakeOpenAIChat):
    """A ``/chat/completions`` whose model thinks before its calls, and wants its thoughts back."""

    def __init__(
        self,
        *words: str,
        field: Literal["reasoning_content", "reasoning_details"] = "reasoning_content",
        fault: Fault | None = None,
        calls: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """Set the answer.

        Args:
            words: The pieces of the answer, each with its spaces; four words by default.
            field: Where its thoughts are: as DeepSeek sends them, or as OpenRouter does.
            fault: The fault to play; ``None`` for none.
            calls: The tools that it calls before it answers a user, with their arguments; ``None``
                for none.
        """
        super().__init__(*words, fault=fault, calls=calls)
        self._field = field

    def thoughts(self) -> Sequence[Mapping[str, Any]]:
        """Return the thoughts in pieces."""
        if self._field == "reasoning_content":
            return [{"reasoning_content": part} for part in THOUGHTS]
        head = {"type": "reasoning.text", "index": 0}
        parts = [{**head, "text": part} for part in THOUGHTS]
        signed = {
            **head,
            "signature": signature("".join(THOUGHTS)),
            "format": "anthropic-claude-v1",
        }
        secret = {"type": "reasoning.encrypted", "data": signature("secret"), "index": 1}
        return [{"reasoning": "", "reasoning_details": [part]} for part in (*parts, signed, secret)]

    def refusal_of(self, body: Mapping[str, Any]) -> tuple[int, Any] | None:
        """Refuse a message of the turn whose thoughts are missing or changed."""
        for number, message in _with_calls(body):
            if not self._is_whole(message.get(self._field)):
                told = f"Missing `{self._field}` field in the assistant message at index {number}"
                return 400, {"error": {"message": told, "type": "invalid_request_error"}}
        return None

    def _is_whole(self, given: Any) -> bool:
        if self._field == "reasoning_content":
            return bool(given == "".join(THOUGHTS))
        texts = [item.get("text", "") for item in given or ()]
        signatures = [item.get("signature") for item in given or ()]
        secrets = [item.get("data") for item in given or ()]
        is_signed = signature("".join(THOUGHTS)) in signatures
        return is_signed and "".join(texts) == "".join(THOUGHTS) and signature("secret") in secrets


def _with_calls(body: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the messages with calls of the newest turn."""
    found: list[tuple[int, Mapping[str, Any]]] = []
    for number, message in enumerate(body["messages"]):
        if message["role"] == "user":
            found = []
        elif message.get("tool_calls"):
            found.append((number, message))
    return found
