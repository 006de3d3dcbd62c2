"""One HTTP request over a stream, as a platform sends it to a server under test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import trio

from bargein.routes import BargeinError


class HttpRefusedError(BargeinError):
    """The server did not answer with success.

    Attributes:
        status: The status of its answer.
        body: The answer.
    """

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"the server answered {status}: {body.decode(errors='replace')[:300]}")
        self.status = status
        self.body = body


async def request_json(
    stream: trio.abc.Stream,
    method: str,
    path: str,
    content: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """Send a request, and return the JSON of its answer.

    Args:
        stream: A new stream to the server; closed at the end.
        method: The method.
        path: The path, with its query.
        content: What is sent as JSON; ``None`` for nothing.
        headers: Further headers.

    Raises:
        HttpRefusedError: The status is not 200.
    """
    body = b"" if content is None else json.dumps(content).encode()
    head = {"Host": "localhost", "Content-Type": "application/json", **(headers or {})}
    if content is not None:
        head["Content-Length"] = str(len(body))
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    got = b""
    async with stream:
        await stream.send_all(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body)
        while data := await stream.receive_some(65_536):
            got += data
    answer, _, told = got.partition(b"\r\n\r\n")
    status = int(answer.split()[1]) if answer else 0
    if status != 200:
        raise HttpRefusedError(status, told)
    return json.loads(told)
