"""A fake of chat models that want their thoughts back with their calls of tools.

By the vendors' pages "Thinking mode: tool calls" (DeepSeek) and "Preserving reasoning"
(OpenRouter): a request that continues a turn without them is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from bargein.nodes.fakes import THOUGHTS, Fault, signature, with_calls

from .fake_chat import FakeOpenAIChat

__all__ = ["FakeReasoningChat"]


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
        for number, message in with_calls(body):
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
