"""A chat model of Google's Gemini API, which speaks OpenAI's chat completions.

By Google's pages "OpenAI compatibility" and "Thought signatures": from Gemini 3 on, a request is
refused if the first call of a message in its newest turn has no signature.  Calls of another
model's have none, and say instead that they need none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bargein.nodes.services import Vendor
from bargein.nodes.vendors.openai.chat import OpenAIChat

from .errors import GEMINI_ERRORS

__all__ = ["GeminiChat"]

GEMINI = Vendor(
    errors=GEMINI_ERRORS,
    url="https://generativelanguage.googleapis.com/v1beta/openai",
    variables="GEMINI",
    key_header="authorization",
)
_NO_SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}
_UNSIGNED = re.compile(r"(models/)?gemini-[12](\D.*)?")
"""Models that sign nothing, or check no signature."""


class GeminiChat(OpenAIChat):
    """Streams answers of a Gemini model, and gives it the signatures of its thoughts back.

    GEMINI_MODEL, GEMINI_API_KEY and GEMINI_BASE_URL stand for arguments that are left out.
    """

    _vendor = GEMINI

    def _body(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        body = super()._body(messages, tools)
        if not _UNSIGNED.fullmatch(self.model):
            body["messages"] = [_signed(message) for message in body["messages"]]
        return body


def _signed(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message whose first call has a signature, or says that it needs none."""
    calls = message.get("tool_calls")
    if not calls or any("extra_content" in call for call in calls):
        return message
    first, *others = calls
    return {**message, "tool_calls": [{**first, "extra_content": _NO_SIGNATURE}, *others]}
