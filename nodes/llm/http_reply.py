"""One HTTP answer of a chat endpoint, streamed or not, from its request to its last byte.

It is read by method calls; see `HttpResponse`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from pydantic_core import from_json

from bargein.nodes.services import (
    ConnectTimeoutError,
    HttpResponse,
    HttpService,
    VendorError,
)

from ._errors import ChatModelError, ChatModelTimeoutError
from ._protocol import AnswerPiece
from ._sse import EventStreamDecoder, EventTooLargeError
from .server_errors import error_of_body


@contextmanager
def translated(model: str, connect_timeout_s: float | None) -> Iterator[None]:
    """Translate the errors of the HTTP service into those of models.

    Raises:
        ChatModelError: Any error of the transport.
    """
    try:
        yield
    except ConnectTimeoutError as error:
        limit_s = connect_timeout_s or 0
        raise ChatModelTimeoutError("connect", limit_s, model=model) from error.__cause__
    except VendorError as error:
        raise ChatModelError(
            error.problem, model=model, retryable=error.retryable, detail=error.detail
        ) from error.__cause__


class Reading(Protocol):
    """Reads the pieces of one answer from an endpoint's events."""

    @property
    def begun(self) -> bool:
        """Whether a token has come, even one that is not for the caller."""
        ...

    @property
    def finished(self) -> bool:
        """Whether the server has sent a finish reason."""
        ...

    @property
    def ended(self) -> bool:
        """Whether the server has said that nothing follows."""
        ...

    def read(self, event: bytes) -> list[AnswerPiece]:
        """Return the pieces in an event of the stream.

        Args:
            event: JSON, or a word such as ``[DONE]``; never empty.

        Raises:
            ChatModelError: The event reports an error, or does not fit the API.
        """
        ...

    def read_whole(self, body: bytes) -> list[AnswerPiece]:
        """Return the pieces of an answer that came in one response.

        Raises:
            ChatModelError: The answer reports an error, or does not fit the API.
        """
        ...

    def finish(self) -> list[AnswerPiece]:
        """Return the pieces that are known only at the end: tool calls, then the usage."""
        ...

    def error(self, error: object, status: int | None = None) -> ChatModelError:
        """Return the exception for an error that the server reports."""
        ...


class HttpReply:
    """An answer in progress; `aclose` must be called however it ends."""

    def __init__(self, model: str, connect_timeout_s: float | None, reading: Reading) -> None:
        """Prepare to read an answer.

        Args:
            model: The model's name, for errors.
            connect_timeout_s: The limit for connecting, for errors.
            reading: Reads the pieces.
        """
        self._model = model
        self._connect_timeout_s = connect_timeout_s
        self._assembler = reading
        self._decoder = EventStreamDecoder()
        self._first: list[AnswerPiece] = []
        self._events: deque[bytes] = deque()
        self._exchange = HttpResponse(model)
        self._ended = False

    async def send(self, service: HttpService, path: str, body: Mapping[str, Any]) -> None:
        """Send a request and wait until the answer begins.

        Args:
            service: Where to send it.
            path: The path, behind that of the base URL.
            body: What the request holds, as JSON.

        Raises:
            ChatModelError: The request failed, or the answer reports an error.
        """
        exchange = self._exchange
        with translated(self._model, self._connect_timeout_s):
            await service.send(path, exchange=exchange, json=body)
            if not exchange.is_success:
                raise await self._refusal(service, exchange)
            if exchange.content_type == "text/html":
                problem = "the address answered with a web page: check base_url="
                raise ChatModelError(problem, model=self._model)
            if "json" in exchange.content_type:
                self._first = self._assembler.read_whole(await exchange.read_all())
                self._ended = True
        while not (self._ended or self._assembler.begun):
            self._first += await self._next()

    async def more(self) -> list[AnswerPiece] | None:
        """Return the pieces in the next event, perhaps none; None at the end.

        Raises:
            ChatModelError: The answer broke off, or reports an error.
        """
        if self._first:
            first, self._first = self._first, []
            return first
        if not self._ended:
            return await self._next()
        await self._exchange.read_to_end()
        return None

    async def aclose(self) -> None:
        """Close the connection unless the answer was read to its end; safe at any time."""
        await self._exchange.aclose()

    async def _next(self) -> list[AnswerPiece]:
        """Return the pieces of one more event."""
        while not self._events:
            try:
                with translated(self._model, self._connect_timeout_s):
                    chunk = await self._exchange.read()
            except ChatModelError:
                if not self._assembler.finished:
                    raise
                chunk = None  # the answer is whole; only HTTP's own end is missing
            if chunk is None:
                return self._at_end_of_stream()
            self._decode(chunk)
        return self._parse(self._events.popleft())

    def _decode(self, chunk: bytes) -> None:
        try:
            self._events.extend(self._decoder.feed(chunk))
        except EventTooLargeError as error:
            raise ChatModelError(str(error), model=self._model) from error

    def _parse(self, event: bytes) -> list[AnswerPiece]:
        event = event.strip()
        pieces = self._assembler.read(event) if event else []
        if self._assembler.ended:
            self._ended = True
            return [*pieces, *self._assembler.finish()]
        return pieces

    def _at_end_of_stream(self) -> list[AnswerPiece]:
        """Handle the last byte of the stream: finish the answer, or raise if it is incomplete."""
        self._events.extend(self._decoder.close())
        if self._events:
            return self._parse(self._events.popleft())
        if not self._assembler.finished:
            problem = "the answer broke off: the server closed the stream before its end"
            raise ChatModelError(problem, model=self._model, retryable=True)
        self._ended = True
        return self._assembler.finish()

    async def _refusal(self, service: HttpService, exchange: HttpResponse) -> ChatModelError:
        """Return the error for an unsuccessful response."""
        told = None
        body = await exchange.read_some()
        with suppress(ValueError):
            told = from_json(body)
        reported = error_of_body(told)
        error = self._assembler.error(reported or exchange.reason, exchange.status)
        meant = service.errors.refusal("", exchange.status, exchange.headers, body)
        error.allow_retry(retryable=meant.retryable, after_s=meant.retry_after_s)
        return error
