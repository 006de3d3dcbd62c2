"""A language model behind any endpoint that speaks OpenAI's chat completions."""

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

    The pool opens with the first question and closes when the run of trio ends; inside of
    ``async with model.open()`` it closes with the block.
    """

    _path = "/chat/completions"

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
        """Settle where to ask; connects nowhere.

        Args:
            model: The model's name; None takes it from OPENAI_MODEL.
            base_url: Where ``/chat/completions`` is; None takes it from OPENAI_BASE_URL, and
                failing that asks OpenAI.
            api_key: Sent as a bearer token; None takes it from OPENAI_API_KEY.  None is sent
                where neither names one: servers of one's own often want none.
            options: More fields for each request (``{"temperature": 0.3}``), over ours; None as a
                value leaves a field out.
            headers: More headers for each request.
            connect_timeout_s: Limit for connecting, TLS included; None sets none.
            first_token_timeout_s: Limit from sending a request to the first token of its answer;
                None sets none.  Comments that keep the connection alive are no tokens.
            between_tokens_timeout_s: Limit between two chunks of an answer; None sets none.
            attempts: How often a question is sent at most, 1 or more.
            first_wait_s: Longest wait before the second attempt; doubled for each further one.
            max_wait_s: Longest wait; a server that asks for more is not asked again.
            random: Gives numbers from 0 to 1, for the jitter.
            transport: Carries the requests in place of the network; None takes the network, with
                the proxies that the environment names.

        Raises:
            ValueError: No model is named, or OpenAI is to be asked without a key.
        """
        base_url = base_url or os.environ.get("OPENAI_BASE_URL") or _DEFAULT_BASE_URL
        model = model or os.environ.get("OPENAI_MODEL", "")
        api_key = api_key or os.environ.get("OPENAI_API_KEY", "")
        if not model:
            raise ValueError('no model named: pass OpenAIChat("name") or set OPENAI_MODEL')
        if base_url.rstrip("/") == _DEFAULT_BASE_URL and not api_key:
            raise ValueError(
                f"{_DEFAULT_BASE_URL!r} wants a key: pass api_key= or set OPENAI_API_KEY, "
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
        return {"authorization": f"Bearer {self._api_key}"} if self._api_key else {}

    def _reading(self) -> Reading:
        return Assembler(self.model)
