"""A chat model that uses any endpoint with OpenAI's chat completions API."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bargein.nodes.vendors import Backoff

from ._assembler import Assembler
from ._http_chat import HttpChat, HttpLimits
from ._http_reply import Reading

if TYPE_CHECKING:
    import httpx2

_DEFAULT_BASE_URL = "https://api.openai.com/v1"


class OpenAIChat(HttpChat):
    """Streams answers from a chat completions endpoint, over one pool of connections.

    The pool opens at the first request and closes when trio's run ends; with ``async with
    model.open()`` it closes with the block.
    """

    _path = "/chat/completions"
    _variable = "OPENAI_API_KEY"

    def __init__(
        self,
        model: str | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        options: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        connect_timeout_s: float | None = 5.0,
        first_token_timeout_s: float | None = 20.0,
        between_tokens_timeout_s: float | None = 15.0,
        attempts: int = 3,
        first_wait_s: float = 0.25,
        max_wait_s: float = 8.0,
        random: Callable[[], float] = random.random,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Configure the endpoint; nothing connects yet.

        Args:
            model: The model's name; ``None`` reads OPENAI_MODEL.
            base_url: The URL that ``/chat/completions`` is appended to; ``None`` reads
                OPENAI_BASE_URL, and without that uses OpenAI's.
            api_key: Sent as a bearer token; ``None`` reads OPENAI_API_KEY.  Without either no token
                is sent, as servers of your own often need none.
            options: Further fields of each request (``{"temperature": 0.3}``), which override ours;
                ``None`` as a value removes a field.
            headers: Further headers of each request.
            connect_timeout_s: Limit for connecting, TLS included; ``None`` sets none.
            first_token_timeout_s: Limit from sending a request to the first token; ``None`` sets
                none.  Keep-alive comments do not count as tokens.
            between_tokens_timeout_s: Limit between two chunks of an answer; ``None`` sets none.
            attempts: The largest number of attempts for a request, from 1.
            first_wait_s: Longest wait before the second attempt; doubled for each further one.
            max_wait_s: The longest wait; if a server asks for more, there is no further attempt.
            random: Returns numbers from 0 to 1, for the jitter.
            transport: Carries the requests instead of the network; ``None`` uses the network, with
                the proxies that the environment names.

        Raises:
            TypeError: `options` or `headers` is no mapping.
            ValueError: No model is named, the endpoint is OpenAI's and there is no key, or a
                request cannot carry a key, URL, option or header.
        """
        base_url = base_url or os.environ.get("OPENAI_BASE_URL") or _DEFAULT_BASE_URL
        model = model or os.environ.get("OPENAI_MODEL", "")
        api_key = (api_key or os.environ.get("OPENAI_API_KEY", "")).strip()
        if not model:
            raise ValueError('no model named: pass OpenAIChat("name") or set OPENAI_MODEL')
        if base_url.rstrip("/") == _DEFAULT_BASE_URL and not api_key:
            raise ValueError(
                f"{_DEFAULT_BASE_URL!r} requires a key: pass api_key= or set OPENAI_API_KEY, "
                "or name a server of your own with base_url= or OPENAI_BASE_URL"
            )
        super().__init__(
            model,
            base_url,
            api_key=api_key,
            options=options,
            headers=headers,
            limits=HttpLimits(
                connect_timeout_s=connect_timeout_s,
                first_token_timeout_s=first_token_timeout_s,
                between_tokens_timeout_s=between_tokens_timeout_s,
                backoff=Backoff(attempts, first_wait_s, max_wait_s, random),
            ),
            transport=transport,
        )

    def _body(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        return {
            "model": self.model,
            "messages": list(messages),
            "stream": True,
            "stream_options": {"include_usage": True},
            "tools": list(tools) or None,
        }

    def _key_headers(self) -> Mapping[str, str]:
        return {"authorization": f"Bearer {self._key.reveal()}"} if self._key else {}

    def _reading(self) -> Reading:
        return Assembler(self.model)
