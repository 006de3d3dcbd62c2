"""A chat model that uses any endpoint with OpenAI's chat completions API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bargein.nodes.llm.completion_chunks import Assembler
from bargein.nodes.llm.completion_fields import with_own_fields
from bargein.nodes.llm.http_chat import HttpChat, HttpLimits
from bargein.nodes.llm.http_reply import Reading
from bargein.nodes.services import Query

from ._address import OPENAI_HTTP

if TYPE_CHECKING:
    import httpx2

__all__ = ["OpenAIChat"]


class OpenAIChat(HttpChat):
    """Streams answers from a chat completions endpoint, over one pool of connections.

    The pool opens at the first request and closes when trio's run ends; with ``async with
    model.open()`` it closes with the block.
    """

    _path = "/chat/completions"
    _vendor = OPENAI_HTTP

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
        """Configure the endpoint; nothing connects yet.

        Args:
            model: The model's name; ``None`` reads OPENAI_MODEL.
            api_key: Sent as a bearer token; ``None`` reads OPENAI_API_KEY.  Without either no token
                is sent, as servers of your own often need none.
            options: Further fields of each request (``{"temperature": 0.3}``), which override ours;
                ``None`` as a value removes a field.
            base_url: The URL that ``/chat/completions`` is appended to, before its query if it has
                one; ``None`` reads OPENAI_BASE_URL, and without that uses OpenAI's.
            headers: Further headers of each request, which override ours, the key included.
            query: Further parameters of each address, which override others; ``None`` removes one.
            limits: The limits of a request; ``None`` for the defaults.
            transport: Carries the requests instead of the network; ``None`` uses the network, with
                the proxies that the environment names.

        Raises:
            ChatModelExtraError: httpx2 is not installed (extra ``llm``).
            TypeError: `options`, `headers` or `query` is no mapping.
            ValueError: No model is named, the endpoint is OpenAI's and there is no key, or a
                request cannot carry a key, URL, option or header.
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
        return {
            "model": self.model,
            "messages": with_own_fields(messages, self.provider),
            "stream": True,
            "stream_options": {"include_usage": True},
            "tools": list(tools) or None,
        }

    def _reading(self) -> Reading:
        return Assembler(self.model, self.provider, self._vendor.errors)
