"""A chat model that uses Anthropic's messages API."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bargein.bridge.validation.numbers import check_count

from ._anthropic_wire import MessageReading, request_of
from ._http_chat import HttpChat, HttpLimits
from ._http_reply import Reading

if TYPE_CHECKING:
    import httpx2

_DEFAULT_BASE_URL = "https://api.anthropic.com/v1"
_VERSION = "2023-06-01"
"""The API version sent as ``anthropic-version``."""


class AnthropicChat(HttpChat):
    """Streams answers from Anthropic's messages API, over one pool of connections.

    The pool opens at the first request and closes when trio's run ends; with ``async with
    model.open()`` it closes with the block.  With extended thinking (``options={"thinking": ...}``)
    a model cannot use tools: the API requires its thoughts back with the results, and a history
    does not keep them.
    """

    _path = "/messages"
    _variables = "ANTHROPIC"

    def __init__(
        self,
        model: str | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        max_tokens: int = 1024,
        cached: bool = True,
        options: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        limits: HttpLimits | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Configure the endpoint; nothing connects yet.

        Args:
            model: The model's name; ``None`` reads ANTHROPIC_MODEL.
            base_url: The URL that ``/messages`` is appended to; ``None`` reads ANTHROPIC_BASE_URL,
                and without that uses Anthropic's.
            api_key: Sent as ``x-api-key``; ``None`` reads ANTHROPIC_API_KEY.
            max_tokens: The longest answer, in tokens; the API requires a limit.
            cached: Whether to have the endpoint cache the prompt for the next request; ``Usage``
                says how much of a request was cached.
            options: Further fields of each request (``{"temperature": 0.3}``), which override ours;
                ``None`` as a value removes a field.
            headers: Further headers of each request.
            limits: The limits of a request; ``None`` for the defaults.
            transport: Carries the requests instead of the network; ``None`` uses the network, with
                the proxies that the environment names.

        Raises:
            ChatModelExtraError: httpx2 is not installed (extra ``llm``).
            TypeError: `options` or `headers` is no mapping.
            ValueError: No model is named, the endpoint is Anthropic's and there is no key, a number
                is out of bounds, or a request cannot carry a key, URL, option or header.
        """
        base_url = base_url or os.environ.get("ANTHROPIC_BASE_URL") or _DEFAULT_BASE_URL
        model = model or os.environ.get("ANTHROPIC_MODEL", "")
        api_key = (api_key or os.environ.get("ANTHROPIC_API_KEY", "")).strip()
        if not model:
            raise ValueError('no model named: pass AnthropicChat("name") or set ANTHROPIC_MODEL')
        if base_url.rstrip("/") == _DEFAULT_BASE_URL and not api_key:
            raise ValueError(
                f"{_DEFAULT_BASE_URL!r} requires a key: pass api_key= or set ANTHROPIC_API_KEY"
            )
        check_count("AnthropicChat(max_tokens=)", max_tokens)
        super().__init__(
            model,
            base_url,
            api_key=api_key,
            options=options,
            headers=headers,
            limits=limits,
            transport=transport,
        )
        self._max_tokens = max_tokens
        self._cached = cached

    def _body(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        asked = request_of(messages, tools, cached=self._cached)
        return {"model": self.model, "max_tokens": self._max_tokens, "stream": True, **asked}

    def _key_headers(self) -> Mapping[str, str]:
        key = {"x-api-key": self._key.reveal()} if self._key else {}
        return {"anthropic-version": _VERSION, **key}

    def _reading(self) -> Reading:
        return MessageReading(self.model)
