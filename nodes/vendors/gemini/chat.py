"""A chat model of Google's Gemini API, which speaks OpenAI's chat completions.

By Google's pages "OpenAI compatibility" and "Thought signatures": from Gemini 3 on, a request is
refused if the first call of a message in its newest turn has no signature.  Calls of another
model's have none, and say instead that they need none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bargein.nodes.llm.http_chat import HttpLimits
from bargein.nodes.services import Query, Vendor
from bargein.nodes.vendors.openai.chat import OpenAIChat

from .errors import GEMINI_ERRORS

if TYPE_CHECKING:
    import httpx2

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
    """Streams answers of a Gemini model, and gives it the signatures of its thoughts back."""

    _vendor = GEMINI

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str | None = None,
        options: Mapping[str, Any] | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        query: Query | None = None,
        limits: HttpLimits | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Configure the model; nothing connects yet.

        Args:
            model: The model's name; ``None`` reads GEMINI_MODEL.
            api_key: Sent as a bearer token; ``None`` reads GEMINI_API_KEY.
            options: Further fields of each request, such as ``{"reasoning_effort": "low"}``; see
                `OpenAIChat`.
            base_url: Where else the API is, such as a gateway; ``None`` reads GEMINI_BASE_URL, and
                without that uses Google's.
            headers: Further headers of each request; see `OpenAIChat`.
            query: Further parameters of each address; see `OpenAIChat`.
            limits: The limits of a request; ``None`` for the defaults.
            transport: Carries the requests instead of the network; ``None`` uses the network.

        Raises:
            ChatModelExtraError: httpx2 is not installed (extra ``llm``).
            TypeError: `options`, `headers` or `query` is no mapping.
            ValueError: No model is named, the API is Google's and there is no key, or a request
                cannot carry a key, URL, option or header.
        """
        super().__init__(
            model,
            api_key=api_key,
            options=options,
            base_url=base_url,
            headers=headers,
            query=query,
            limits=limits,
            transport=transport,
        )

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
