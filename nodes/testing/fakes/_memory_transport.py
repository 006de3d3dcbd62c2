"""Carries HTTP requests to a fake in memory, through a real connection pool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import trio

if TYPE_CHECKING:
    import httpx2

GONE = (trio.BrokenResourceError, trio.ClosedResourceError)


def memory_transport(
    dial: Callable[[], Awaitable[trio.abc.Stream]], missing: Callable[[str], Exception]
) -> httpx2.AsyncBaseTransport:
    """Return a transport for httpx2 whose connections are streams of ours.

    Args:
        dial: Opens the stream of a connection.
        missing: Makes the error for a package that is not installed, from its name.

    Raises:
        Exception: What `missing` returns: httpx2 is not installed.
    """
    try:
        http, core = import_module("httpx2"), import_module("httpcore2")
    except ImportError as error:
        raise missing(error.name or "httpx2") from error

    class MemoryConnection(core.AsyncNetworkStream):  # type: ignore[misc,name-defined]  # an extra
        def __init__(self, stream: trio.abc.Stream) -> None:
            self._stream = stream

        async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
            try:
                return bytes(await self._stream.receive_some(max_bytes))
            except GONE as error:
                raise core.ReadError from error

        async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
            try:
                await self._stream.send_all(buffer)
            except GONE as error:
                raise core.WriteError from error

        async def aclose(self) -> None:
            await self._stream.aclose()

        def get_extra_info(self, info: str) -> Any:
            return None

    class MemoryBackend(core.AsyncNetworkBackend):  # type: ignore[misc,name-defined]  # an extra
        async def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,
            **_: Any,  # noqa: ASYNC109
        ) -> Any:
            try:
                with trio.fail_after(float("inf") if timeout is None else timeout):
                    return MemoryConnection(await dial())
            except trio.TooSlowError as error:
                raise core.ConnectTimeout from error

        async def sleep(self, seconds: float) -> None:
            await trio.sleep(seconds)

    class MemoryTransport(http.AsyncHTTPTransport):  # type: ignore[misc,name-defined]  # an extra
        def __init__(self) -> None:
            super().__init__()
            self._pool = core.AsyncConnectionPool(network_backend=MemoryBackend())

    return cast("httpx2.AsyncBaseTransport", MemoryTransport())
