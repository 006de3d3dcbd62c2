"""A fake of Gemini's chat completions, by Google's page "Thought signatures".

A request that continues a turn without the signatures of its calls is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bargein.nodes.fakes import signature, with_calls
from bargein.nodes.vendors.openai.fake_chat import FakeOpenAIChat

__all__ = ["FakeGeminiChat"]

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
        for number, message in with_calls(body):
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
