"""The base class of chat models over HTTP: connections, limits and retries.

Subclasses write the request and read the answer: see `OpenAIChat` and `AnthropicChat`.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Unpack

import trio

from bargein.bridge.validation.numbers import check_numbers
from bargein.nodes.services import (
    Backoff,
    ServiceArguments,
    Vendor,
    VendorError,
    checked_options,
    without_secrets,
)
from bargein.routes.logs import get_logger

from ._answer_stream import AnswerStream
from ._errors import ChatModelExtraError, ChatModelTimeoutError
from ._protocol import AnswerPiece
from .http_reply import HttpReply, Reading

_log = get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """How long an endpoint may take, and how many attempts a request gets."""

    connect_timeout_s: float | None = 5.0
    """Limit for connecting, TLS included; ``None`` sets none."""
    first_token_timeout_s: float | None = 20.0
    """Limit from sending a request to the first token; ``None`` sets none.  Keep-alive comments do
    not count as tokens."""
    between_tokens_timeout_s: float | None = 15.0
    """Limit between two pieces of an answer; ``None`` sets none."""
    attempts: int = 3
    """The largest number of attempts for a request, from 1."""
    first_wait_s: float = 0.25
    """Longest wait before the second attempt; doubled for each further one."""
    max_wait_s: float = 8.0
    """The longest wait; if a server asks for more, there is no further attempt."""
    random: Callable[[], float] = random.random
    """Returns numbers from 0 to 1, for the jitter of the waits."""

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            TypeError: One of them is not a number.
            ValueError: A wait is negative, another number is not above 0, or one is infinite.
        """
        check_numbers(self, HttpLimits, first_wait_s=0, max_wait_s=0)


class ChatArguments(ServiceArguments, total=False):
    """What each chat model over HTTP takes beside its own."""

    options: Mapping[str, Any] | None
    """Further fields of each request (``{"temperature": 0.3}``), which override ours; ``None`` as a
    value removes a field."""
    limits: HttpLimits | None
    """The limits of a request; ``None`` for the defaults."""


class HttpChat:
    """Streams answers from an endpoint, over one pool of connections.

    The pool opens at the first request and closes when trio's run ends; with ``async with
    model.open()`` it closes with the block.

    Attributes:
        provider: Its class and address: the model that gets its own fields of tool calls back.
    """

    _path: ClassVar[str]
    """The path of the endpoint, appended to the base URL."""
    _vendor: ClassVar[Vendor]
    """Where it is unless the user says otherwise, and how it takes its key."""

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        **request: Unpack[ChatArguments],
    ) -> None:
        """Configure the endpoint; nothing connects yet.

        Args:
            model: The model's name; ``None`` reads the vendor's ``_MODEL``, as in OPENAI_MODEL.
            api_key: The key; ``None`` reads the vendor's ``_API_KEY``.  Without either none is
                sent, as servers of your own often need none.
            base_url: The URL that the path is appended to, before its query if it has one; ``None``
                reads the vendor's ``_BASE_URL``, and without that uses the vendor's own.
            request: What each request carries, as `ChatArguments` says.

        Raises:
            ChatModelExtraError: httpx2 is not installed (extra ``llm``).
            TypeError: `options`, `headers` or `query` is no mapping.
            ValueError: No model is named, the endpoint is the vendor's and there is no key, or a
                request cannot carry a key, URL, option or header.
        """
        owner, variables = type(self).__name__, self._vendor.variables
        options, limits = request.pop("options", None), request.pop("limits", None)
        model = model or os.environ.get(f"{variables}_MODEL", "")
        if not model:
            raise ValueError(f'no model named: pass {owner}("name") or set {variables}_MODEL')
        self.model = model
        self._options = checked_options(options)
        self.limits = limits = limits or HttpLimits()
        vendor = replace(self._vendor, errors=replace(self._vendor.errors, vendor=model))
        self._service = vendor.service(
            owner,
            api_key or None,
            base_url or os.environ.get(f"{variables}_BASE_URL") or vendor.url,
            request,
            extra="llm",
            missing=ChatModelExtraError,
            variable=f"base_url= or {variables}_BASE_URL",
            connect_s=limits.connect_timeout_s,
            backoff=Backoff(limits.attempts, limits.first_wait_s, limits.max_wait_s, limits.random),
        )
        self.base_url = self._service.base_url
        self.provider = f"{owner} {without_secrets(self.base_url)}"

    # --- for subclasses ---------------------------------------------------------------------------

    def _body(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return the body of a request; fields that are None are left out."""
        raise NotImplementedError

    def _reading(self) -> Reading:
        raise NotImplementedError

    # --- requests ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        shown = without_secrets(self.base_url)
        return f"{type(self).__name__}({self.model!r}, base_url={shown!r})"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep the connection pool open for the block; blocks may overlap."""
        async with self._service.open():
            yield

    async def prewarm(self) -> None:
        """Open a connection in advance, so that the next request does not wait for TCP and TLS.

        An interrupted answer loses its connection, so call this when the caller begins to speak. It
        sends the server one cheap request, takes at most `connect_timeout_s` (5 s if that is None),
        never raises, and can be cancelled safely.
        """
        limit_s = 5.0 if self.limits.connect_timeout_s is None else self.limits.connect_timeout_s
        with trio.move_on_after(limit_s):
            try:
                await self._service.prewarm("/models")
            except VendorError as error:
                _log.debug(
                    "llm_prewarm_failed", model=self.model, error=type(error.__cause__).__name__
                )

    def stream(
        self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Mapping[str, Any]] = ()
    ) -> AnswerStream:
        """Yield an answer piece by piece; see `ChatModel.stream`.

        A request that fails before its first token is retried, up to `attempts`, if the connection
        failed or the status is 408, 409, 429 or 5xx; ``Retry-After`` is respected. Cancelling
        closes the connection at any time.

        Raises:
            ChatModelTimeoutError: While iterating: a limit ran out. There is no retry.
            ChatModelError: While iterating: any other failure.
        """
        return AnswerStream(self._pieces(self._request(messages, tools)))

    def _request(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        body = self._body(messages, tools) | self._options
        return {name: value for name, value in body.items() if value is not None}

    async def _pieces(self, body: Mapping[str, Any]) -> AsyncGenerator[AnswerPiece, None]:
        reply = await self._send_until_answered(body)
        try:
            while (pieces := await self._more(reply)) is not None:
                for piece in pieces:
                    yield piece
        finally:
            await reply.aclose()

    async def _send_until_answered(self, body: Mapping[str, Any]) -> HttpReply:
        """Send the request until an answer begins; raise the error of the last attempt.

        Whoever has waited in vain for a token has waited long enough: there is no other attempt.
        """
        limit_s = self.limits.first_token_timeout_s
        try:
            return await self._service.retrying(partial(self._attempt, body, limit_s))
        except trio.TooSlowError:
            raise ChatModelTimeoutError("first_token", limit_s or 0, model=self.model) from None

    async def _attempt(self, body: Mapping[str, Any], limit_s: float | None) -> HttpReply:
        """Send the request once and wait for the first token."""
        reply = HttpReply(self.model, self.limits.connect_timeout_s, self._reading())
        try:
            with trio.fail_after(math.inf if limit_s is None else limit_s):
                await reply.send(self._service, self._path, body)
        except BaseException:
            await reply.aclose()
            raise
        return reply

    async def _more(self, reply: HttpReply) -> list[AnswerPiece] | None:
        """Return the next pieces, or None at the end."""
        limit_s = self.limits.between_tokens_timeout_s
        try:
            with trio.fail_after(math.inf if limit_s is None else limit_s):
                return await reply.more()
        except trio.TooSlowError:
            raise ChatModelTimeoutError("between_tokens", limit_s or 0, model=self.model) from None
