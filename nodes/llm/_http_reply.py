"""One HTTP answer of a chat endpoint, streamed or not, from its request to its last byte.

It is read by method calls, not by a generator, so that each call can have its own deadline and no
cancel scope stays open between calls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

import trio
from pydantic_core import from_json

from bargein.nodes.vendors import retry_after_s

from ._completion_chunks import retryable_status
from ._errors import ChatModelError, ChatModelTimeoutError
from ._protocol import AnswerPiece
from ._sse import EventStreamDecoder, EventTooLargeError

if TYPE_CHECKING:
    import httpx2

_CLOSE_S = 2.0
_END_S = 0.05
"""How long to wait for the end of the response after the last event, so that the connection can be
reused; if the server takes longer, it is closed."""
_REFUSAL_S = 2.0
"""How long to wait for the body of an unsuccessful response, whose status is known before."""
_MAX_BODY_BYTES = 4 << 20
_MAX_ERROR_BYTES = 64 << 10


@contextmanager
def translated(model: str, connect_timeout_s: float | None) -> Iterator[None]:
    """Translate the errors of httpx2 into ours.

    Raises:
        ChatModelError: Any error of the transport.
    """
    import httpx2

    try:
        yield
    except httpx2.ConnectTimeout as error:
        limit_s = connect_timeout_s or 0
        raise ChatModelTimeoutError("connect", limit_s, model=model) from error
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError) as error:
        raise ChatModelError(f"the base URL is not usable ({error})", model=model) from error
    except httpx2.ConnectError as error:
        problem = "cannot connect: check that the server is up and the base URL is right"
        url = error.request.url  # its netloc is without a user's name and password
        detail = f"{url.scheme}://{url.netloc.decode()}: {error}"
        raise ChatModelError(problem, model=model, retryable=True, detail=detail) from error
    except httpx2.TransportError as error:
        raise ChatModelError("the connection broke", model=model, retryable=True) from error
    except httpx2.RequestError as error:
        raise ChatModelError("the answer cannot be decoded", model=model) from error


async def close_response(
    response: httpx2.Response, body: AsyncGenerator[bytes, None] | None
) -> None:
    """Close a response, even in mid-stream; safe at any time, even when cancelled.

    Args:
        response: The response.
        body: The generator that reads it; ``None`` if there is none.
    """
    if response.is_closed:
        return
    # A suspended body is a chain of suspended generators, and httpx2 does not close all of them. A
    # read that is cancelled at once makes each of them unwind in order.
    with trio.CancelScope(shield=True) as scope, suppress(Exception):  # the body is discarded
        scope.cancel(reason="the answer is closed")
        while body is not None and await anext(body, None) is not None:
            continue
    with trio.move_on_after(_CLOSE_S, shield=True):
        await response.aclose()


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
        self._response: httpx2.Response | None = None
        self._body: AsyncGenerator[bytes, None] | None = None
        self._ended = False

    async def send(self, client: httpx2.AsyncClient, request: httpx2.Request) -> None:
        """Send the request and wait until the answer begins.

        Raises:
            ChatModelError: The request failed, or the answer reports an error.
        """
        with translated(self._model, self._connect_timeout_s):
            self._response = response = await client.send(request, stream=True)
            self._body = response.aiter_bytes()
            if not response.is_success:
                raise await self._refusal(response)
            content_type = response.headers.get("content-type", "")
            if content_type.startswith("text/html"):
                problem = "the address answered with a web page: check base_url="
                raise ChatModelError(problem, model=self._model)
            if "json" in content_type:
                self._first = self._assembler.read_whole(await self._all(_MAX_BODY_BYTES))
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
        await self._read_to_end()
        return None

    async def aclose(self) -> None:
        """Close the connection unless the answer was read to its end; safe at any time."""
        body, self._body = self._body, None
        response, self._response = self._response, None
        if response is not None:
            await close_response(response, body)

    async def _next(self) -> list[AnswerPiece]:
        """Return the pieces of one more event."""
        while not self._events:
            try:
                with translated(self._model, self._connect_timeout_s):
                    chunk = await anext(self._body, None) if self._body is not None else None
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

    async def _read_to_end(self) -> None:
        """Read the rest of the HTTP message, so that its connection can be reused."""
        body = self._body
        # A connection that breaks here costs nothing: the answer is whole.
        ours = translated(self._model, self._connect_timeout_s)
        with trio.move_on_after(_END_S), suppress(ChatModelError), ours:
            while body is not None and await anext(body, None) is not None:
                continue

    async def _all(self, limit: int) -> bytes:
        data = bytearray()
        while self._body is not None and (part := await anext(self._body, None)) is not None:
            data += part
            if len(data) > limit:
                raise ChatModelError(f"the answer exceeds {limit} bytes", model=self._model)
        return bytes(data)

    async def _refusal(self, response: httpx2.Response) -> ChatModelError:
        """Return the error for an unsuccessful response."""
        told = None
        ours = translated(self._model, self._connect_timeout_s)
        with trio.move_on_after(_REFUSAL_S), suppress(ValueError, ChatModelError), ours:
            told = from_json(await self._all(_MAX_ERROR_BYTES))
        reported = told.get("error", told) if isinstance(told, dict) else ""
        error = self._assembler.error(reported or response.reason_phrase, response.status_code)
        error.allow_retry(
            retryable=retryable_status(response.status_code),
            after_s=retry_after_s(response.headers),
        )
        return error
