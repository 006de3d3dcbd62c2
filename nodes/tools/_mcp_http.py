"""The connection to an MCP server over HTTP, for the SDK's transport.

The SDK reads an answer whole, however long it is, and refuses one that its parser of JSON does not
follow.  Here an answer is bounded, and what other readers of JSON follow is rewritten for it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

from bargein.bridge.validation.foreign_data import showable

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams

MOST_OF_ANSWER = 64 << 20
"""The longest answer in bytes, as for a program's messages."""

MOST_OF_EVENT = 1 << 20
"""The longest line of an event stream in bytes; the SDK takes no longer event either."""

_DATA = b"data:"


@asynccontextmanager
async def open_http(url: str, headers: Mapping[str, str]) -> AsyncIterator[TransportStreams]:
    """Connect to a server and yield the two streams for the SDK's session.

    Args:
        url: Its endpoint.
        headers: Further headers of each request.
    """
    import httpx2
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import MCP_DEFAULT_SSE_READ_TIMEOUT, MCP_DEFAULT_TIMEOUT

    class Bounded(httpx2.AsyncByteStream):
        """The body of an answer, as far as it is read."""

        def __init__(self, response: httpx2.Response) -> None:
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            self._body = response.stream
            self._pieces = _checked(response, self._body)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async with aclosing(self._pieces) as pieces:
                async for piece in pieces:
                    yield piece

        async def aclose(self) -> None:
            await self._body.aclose()

    async def bound(response: httpx2.Response) -> None:
        setattr(response, "stream", Bounded(response))  # noqa: B010 - a hook has no other way

    async with (
        httpx2.AsyncClient(
            # An answer that is packed could be a thousand times as long as what arrives of it.
            headers={"accept-encoding": "identity", **headers},
            timeout=httpx2.Timeout(MCP_DEFAULT_TIMEOUT, read=MCP_DEFAULT_SSE_READ_TIMEOUT),
            event_hooks={"response": [bound]},
        ) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams


async def _checked(
    response: httpx2.Response, body: httpx2.AsyncByteStream
) -> AsyncGenerator[bytes, None]:
    """Yield the body of an answer: an event stream line by line, anything else at once.

    Raises:
        StreamError: It is packed, or too long; the SDK fails its request.
    """
    import httpx2

    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise httpx2.StreamError("the server packed its answer, which it was asked not to do")
    are_events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    most = MOST_OF_EVENT if are_events else MOST_OF_ANSWER
    kept = bytearray()
    async for piece in body:
        kept += piece
        if are_events and b"\n" in piece:
            lines, _, rest = bytes(kept).rpartition(b"\n")
            kept = bytearray(rest)
            yield b"".join(map(_readable_line, (lines + b"\n").splitlines(keepends=True)))
        if len(kept) > most:
            raise httpx2.StreamError(f"the answer has more than {most >> 20} MiB")
    yield bytes(kept) if are_events else _readable(bytes(kept))


def _readable_line(line: bytes) -> bytes:
    """Return a line of an event stream, its data readable for the SDK."""
    if not line.startswith(_DATA):
        return line
    data = line[len(_DATA) :].strip()
    return _DATA + b" " + _readable(data) + b"\n" if data else line


def _readable(text: bytes) -> bytes:
    """Return JSON as the SDK's parser takes it; what is no JSON stays as it is.

    That parser refuses lone surrogates, deep nesting and numbers of many digits.
    """
    from pydantic_core import from_json

    try:
        from_json(text)
    except ValueError:
        try:
            return json.dumps(showable(json.loads(text))).encode()
        except (ValueError, RecursionError):
            return text
    return text
