"""A chat model that uses Anthropic's messages API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from bargein.bridge.validation.numbers import check_count
from bargein.nodes.llm.http_chat import ChatArguments, HttpChat
from bargein.nodes.llm.http_reply import Reading
from bargein.nodes.services import Vendor

from ._fields import may_think
from ._messages import MessageReading, request_of
from .errors import ANTHROPIC_ERRORS

__all__ = ["AnthropicChat"]

ANTHROPIC = Vendor(
    errors=ANTHROPIC_ERRORS,
    url="https://api.anthropic.com/v1",
    variables="ANTHROPIC",
    key_header="x-api-key",
    key_form="{}",
    headers={"anthropic-version": "2023-06-01"},
)


class AnthropicChat(HttpChat):
    """Streams answers from Anthropic's messages API; see `HttpChat`.

    With extended thinking (``options={"thinking": ...}``)
    its thoughts go back with the results of its tools, as the API requires; a request that goes on
    behind the tools of another model, as after a `Fallback`, is sent without ``thinking``.
    """

    _path = "/messages"
    _vendor = ANTHROPIC

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str | None = None,
        max_tokens: int = 1024,
        cached: bool = True,
        base_url: str | None = None,
        **request: Unpack[ChatArguments],
    ) -> None:
        """Configure the endpoint; nothing connects yet.

        Args:
            model: The model's name; ``None`` reads ANTHROPIC_MODEL.
            api_key: Sent as ``x-api-key``; ``None`` reads ANTHROPIC_API_KEY.
            max_tokens: The longest answer, in tokens; the API requires a limit.
            cached: Whether to have the endpoint cache the prompt for the next request; ``Usage``
                says how much of a request was cached.
            base_url: The URL that ``/messages`` is appended to; ``None`` reads ANTHROPIC_BASE_URL,
                and without that uses Anthropic's.
            request: What each request carries, as `ChatArguments` says.

        Raises:
            ValueError: `max_tokens` is out of bounds; for other errors see `HttpChat`.
        """
        check_count("AnthropicChat(max_tokens=)", max_tokens)
        super().__init__(model, api_key=api_key, base_url=base_url, **request)
        self._max_tokens = max_tokens
        self._cached = cached

    def _body(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        asked = request_of(messages, tools, cached=self._cached, provider=self.provider)
        return {"model": self.model, "max_tokens": self._max_tokens, "stream": True, **asked}

    def _reading(self) -> Reading:
        return MessageReading(self.model, self.provider)

    def _request(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        asked = super()._request(messages, tools)
        thinking = asked.get("thinking")
        is_due = isinstance(thinking, Mapping) and thinking.get("type") == "enabled"
        if is_due and not may_think(asked["messages"]):
            del asked["thinking"]
        return asked
