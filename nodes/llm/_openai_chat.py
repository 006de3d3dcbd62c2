"""A language model behind any endpoint that speaks OpenAI's chat completions."""

from __future__ import annotations

import math
import os
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import structlog
import trio

from bargein.nodes.vendors import Backoff

from ._answer_stream import Answer
from ._errors import ChatModelError, ChatModelTimeoutError, need
from ._http_reply import Reply, translated
from ._protocol import AnswerPiece
from ._shared_resource import Shared

if TYPE_CHECKING:
    import httpx2

_log = structlog.get_logger()
_DEFAULT_BASE_URL = "https://api.openai.com/v1"
_IDLE_CONNECTION_S = 60.0
"""Kept longer than httpx2's 5 s: a caller thinks and speaks for longer than that between turns."""
_MAX_CONNECTIONS = 200


class OpenAIChat:
    """Streams answers from a chat completions endpoint, over one pool of connections.

    The pool opens with the first question and closes when the run of trio ends; inside of
    ``async with model.open()`` it closes with the block.
    """

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
        self.model = model or os.environ.get("OPENAI_MODEL", "")
        self.base_url = (base_url or os.environ.get("OPENAI_BASE_URL") or _DEFAULT_BASE_URL).rstrip(
            "/"
        )
        self._api_key = api_key or os.environ.get("OPENAI_API_KEY", "")
        if not self.model:
            raise ValueError('no model named: pass OpenAIChat("name") or set OPENAI_MODEL')
        if self.base_url == _DEFAULT_BASE_URL and not self._api_key:
            raise ValueError(
                f"{_DEFAULT_BASE_URL!r} wants a key: pass api_key= or set OPENAI_API_KEY, "
                "or name a server of your own with base_url= or OPENAI_BASE_URL"
            )
        if attempts < 1:
            raise ValueError(f"attempts is {attempts!r}; it must be 1 or more")
        self._options = dict(options or {})
        self._headers = dict(headers or {})
        self.connect_timeout_s = connect_timeout_s
        self.first_token_timeout_s = first_token_timeout_s
        self.between_tokens_timeout_s = between_tokens_timeout_s
        self._backoff = Backoff(attempts, first_wait_s, max_wait_s, random)
        self._transport = transport
        self._client: Shared[httpx2.AsyncClient] = Shared(self._open_client)

    def __repr__(self) -> str:
        return f"OpenAIChat({self.model!r}, base_url={self.base_url!r})"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Hold the pool of connections open for the block; blocks may overlap.

        Raises:
            ChatModelExtraError: httpx2 is not installed (extra ``llm``).
        """
        async with self._client.hold():
            yield

    async def prewarm(self) -> None:
        """Open a connection ahead, so that the next question need not wait for TCP and TLS.

        An answer that is cut costs its connection, so this is for the moment at which the caller
        begins to speak.  It costs the server a request without work, takes at most
        `connect_timeout_s` (5 s where that is None), never fails, and may be cancelled.
        """
        client = await self._client.get()
        limit_s = 5.0 if self.connect_timeout_s is None else self.connect_timeout_s
        with trio.move_on_after(limit_s):
            try:
                with translated(self.model, self.connect_timeout_s):
                    await client.head(f"{self.base_url}/models")
            except ChatModelError as error:
                _log.debug("llm_prewarm_failed", model=self.model, error=type(error).__name__)

    def stream(
        self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Mapping[str, Any]] = ()
    ) -> Answer:
        """Yield an answer piece by piece; see `ChatModel.stream`.

        A question that fails before its first token is sent again, as `attempts` allows, when the
        connection failed or broke, or with status 408, 409, 429 or 5xx; ``Retry-After`` counts.
        Cancelling closes the connection, in every phase.

        Raises:
            ChatModelTimeoutError: While iterating: a limit ran out.  It is not asked again.
            ChatModelError: While iterating: all else.
            ChatModelExtraError: While iterating: httpx2 is not installed (extra ``llm``).
        """
        return Answer(self._pieces(self._body(messages, tools)))

    def _body(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": list(messages),
            "stream": True,
            "stream_options": {"include_usage": True},
            "tools": list(tools) or None,
        }
        body |= self._options
        return {name: value for name, value in body.items() if value is not None}

    async def _pieces(self, body: Mapping[str, Any]) -> AsyncGenerator[AnswerPiece, None]:
        client = await self._client.get()
        reply = await self._begin(client, body)
        try:
            while (pieces := await self._more(reply)) is not None:
                for piece in pieces:
                    yield piece
        finally:
            await reply.aclose()

    async def _begin(self, client: httpx2.AsyncClient, body: Mapping[str, Any]) -> Reply:
        """Send the question until an answer begins, or there is no more hope."""
        attempt = 1
        while True:
            try:
                return await self._attempt(client, body)
            except ChatModelTimeoutError as error:
                if error.phase != "connect":
                    raise  # whoever waits for a voice has waited long enough
                failure: ChatModelError = error
            except ChatModelError as error:
                failure = error
            wait_s = self._backoff.wait_s(failure, attempt)
            if wait_s is None:
                raise failure
            _log.info(
                "llm_retry",
                model=self.model,
                attempt=attempt,
                status=failure.status,
                wait_s=round(wait_s, 3),
            )
            await trio.sleep(wait_s)
            attempt += 1

    async def _attempt(self, client: httpx2.AsyncClient, body: Mapping[str, Any]) -> Reply:
        """Send the question once and wait for the first token."""
        limit_s = self.first_token_timeout_s
        request = client.build_request("POST", f"{self.base_url}/chat/completions", json=body)
        reply = Reply(self.model, self.connect_timeout_s)
        try:
            with trio.fail_after(math.inf if limit_s is None else limit_s):
                await reply.begin(client, request)
        except trio.TooSlowError:
            await reply.aclose()
            raise ChatModelTimeoutError("first_token", limit_s or 0, model=self.model) from None
        except BaseException:
            await reply.aclose()
            raise
        return reply

    async def _more(self, reply: Reply) -> list[AnswerPiece] | None:
        """Return what comes next, None at the end."""
        limit_s = self.between_tokens_timeout_s
        try:
            with trio.fail_after(math.inf if limit_s is None else limit_s):
                return await reply.more()
        except trio.TooSlowError:
            raise ChatModelTimeoutError("between_tokens", limit_s or 0, model=self.model) from None

    @asynccontextmanager
    async def _open_client(self) -> AsyncIterator[httpx2.AsyncClient]:
        httpx2 = need(type(self).__name__, "httpx2", "llm")
        # Without compression: a token in a gzip block arrives when the block does.
        headers = {"accept-encoding": "identity", **self._headers}
        if self._api_key:
            headers["authorization"] = f"Bearer {self._api_key}"
        async with httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(None, connect=self.connect_timeout_s),
            limits=httpx2.Limits(
                max_connections=_MAX_CONNECTIONS, keepalive_expiry=_IDLE_CONNECTION_S
            ),
            transport=self._transport,
        ) as client:
            yield client
