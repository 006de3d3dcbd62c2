"""A chat model that uses Anthropic's messages API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bargein.bridge.validation.numbers import check_count
from bargein.nodes.llm.http_chat import HttpChat, HttpLimits
from bargein.nodes.llm.http_reply import Reading
from bargein.nodes.services import Query, Vendor

from ._fields import may_think
from ._wire import MessageReading, request_of
from .errors import ANTHROPIC_ERRORS

if TYPE_CHECKING:
    import httpx2

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
    """Streams answers from Anthropic's messages API, over one pool of connections.

    The pool opens at the first request and closes when trio's run ends; with ``async with
    model.open()`` it closes with the block.  With extended thinking (``options={"thinking": ...}``)
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
        options: Mapping[str, Any] | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        query: Query | None = None,
        limits: HttpLimits | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Configure the endpoint; nothing connects yet.

        Args:
            model: The model's name; ``None`` reads ANTHROPIC_MODEL.
            api_key: Sent as ``x-api-key``; ``None`` reads ANTHROPIC_API_KEY.
            max_tokens: The longest answer, in tokens; the API requires a limit.
            cached: Whether to have the endpoint cache the prompt for the next request; ``Usage``
                says how much of a request was cached.
            options: Further fields of each request (``{"temperature": 0.3}``), which override ours;
                ``None`` as a value removes a field.
            base_url: The URL that ``/messages`` is appended to, before its query if it has one;
                ``None`` reads ANTHROPIC_BASE_URL, and without that uses Anthropic's.
            headers: Further headers of each request, which override ours, the key included.
            query: Further parameters of each address, which override others; ``None`` removes one.
            limits: The limits of a request; ``None`` for the defaults.
            transport: Carries the requests instead of the network; ``None`` uses the network, with
                the proxies that the environment names.

        Raises:
            ChatModelExtraError: httpx2 is not installed (extra ``llm``).
            TypeError: `options`, `headers` or `query` is no mapping.
            ValueError: No model is named, the endpoint is Anthropic's and there is no key, a number
                is out of bounds, or a request cannot carry a key, URL, option or header.
        """
        check_count("AnthropicChat(max_tokens=)", max_tokens)
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
