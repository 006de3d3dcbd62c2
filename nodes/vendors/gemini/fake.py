"""A fake of Gemini's chat completions, by Google's page "Thought signatures".

A request that continues a turn without the signatures of its calls is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from bargein.nodes.fakes import signature, with_calls
from bargein.nodes.vendors.openai.fake_chat import FakeOpenAIChat

__all__ = ["FakeGeminiChat"]

SKIP = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""What stands for the signature of another model's call."""


def _error(code: int, status: str, message: str) -> Mapping[str, Any]:
    return {"error": {"code": code, "message": message, "status": status}}


class FakeGeminiChat(FakeOpenAIChat):
    """Gemini's ``/chat/completions``: the first call of each message is signed."""

    error = _error(503, "UNAVAILABLE", "no")
    key = "^authorization: bearer "
    no_key: ClassVar[Any] = [_error(401, "UNAUTHENTICATED", "Missing or invalid key.")]
    path = "/chat/completions"
    no_path: ClassVar[Any] = [_error(404, "NOT_FOUND", "no")]

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
            return 400, [_error(400, "INVALID_ARGUMENT", told)]
        return None
