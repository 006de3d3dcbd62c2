"""What a hostile MCP server sends over HTTP ends at most one tool call."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
import trio

from bargein import Call, ChatNode
from bargein.events import ToolResult
from bargein.llm import ToolCallRequest
from bargein.testing import ScriptedModel, open_call
from bargein.tools import McpServer

LIMIT_S = 30.0

READ: dict[str, tuple[str, str]] = {
    "surrogate": (
        '{"content": [{"type": "text", "text": "half \\ud83d of it"}]}',
        "half \ufffd of it",
    ),
    "surrogate_name": (
        '{"content": [{"type": "text", "text": "x"}], "_meta": {"\\udc00": 1}}',
        "x",
    ),
    "whole": ('{"content": [{"type": "text", "text": "\\ud83d\\ude00"}]}', "\U0001f600"),
    "nested": (
        '{"content": [{"type": "text", "text": "x"}], "_meta": {"a": '
        + "[" * 300
        + "]" * 300
        + "}}",
        "x",
    ),
}
"""What the server answers to a call, as JSON, and what the model reads."""

UNREAD: dict[str, str] = {
    "deep": '{"content": [], "structuredContent": {"a": ' + "[" * 5_000 + "]" * 5_000 + "}}",
    "deeper": '{"content": [], "structuredContent": {"a": ' + "[" * 200_000 + "]" * 200_000 + "}}",
    "number": '{"content": [], "structuredContent": {"a": ' + "9" * 100_000 + "}}",
    "nonsense": "[[[",
    "no_object": "7",
}
"""Answers that nobody can read."""


class Handler(BaseHTTPRequestHandler):
    """An MCP server that speaks streamable HTTP, and answers calls with what it is given."""

    protocol_version = "HTTP/1.1"
    result: ClassVar[str | None] = None
    as_events: ClassVar[bool] = False
    sent: ClassVar[int] = 0
    packs: ClassVar[bool] = False

    def log_message(self, *args: Any) -> None:
        """Write nothing."""

    def do_GET(self) -> None:
        self.send_error(405)

    def do_DELETE(self) -> None:
        self.reply(200, "")

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        match message.get("method"):
            case "initialize":
                info = {"name": "x", "version": "1"}
                protocol = message["params"]["protocolVersion"]
                answer = {"protocolVersion": protocol, "capabilities": {"tools": {}}}
                self.answer(message, json.dumps({**answer, "serverInfo": info}))
            case "tools/list":
                tool = {"name": "get", "inputSchema": {"type": "object"}}
                self.answer(message, json.dumps({"tools": [tool]}))
            case "tools/call" if type(self).result is None:
                self.endless(message)
            case "tools/call":
                self.answer(message, type(self).result or "")
            case _:
                self.reply(202, "")

    def answer(self, message: Any, result: str) -> None:
        text = f'{{"jsonrpc": "2.0", "id": {message["id"]}, "result": {result}}}'
        if self.as_events:
            self.reply(200, f"event: message\ndata: {text}\n\n", "text/event-stream")
        else:
            self.reply(200, text)

    def reply(self, status: int, text: str, kind: str = "application/json") -> None:
        body = text.encode()
        packs = self.packs and len(body) > 1 << 20
        if packs:
            body = gzip.compress(body, 1)
        self.send_response(status)
        if packs:
            self.send_header("content-encoding", "gzip")
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def endless(self, message: Any) -> None:
        kind = "text/event-stream" if self.as_events else "application/json"
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("connection", "close")
        self.end_headers()
        text = '{"content": [{"type": "text", "text": "'
        begin = f'{{"jsonrpc": "2.0", "id": {message["id"]}, "result": {text}'
        with suppress(OSError):
            self.wfile.write(("data: " if self.as_events else "").encode() + begin.encode())
            for _ in range(1000):
                self.wfile.write(b"x" * (1 << 20))
                type(self).sent += 1 << 20
        self.close_connection = True


@contextmanager
def serving(result: str | None, *, as_events: bool) -> Iterator[tuple[str, type[Handler]]]:
    """Serve in a thread, and yield the URL and the handler's class."""
    handler = type("Hostile", (Handler,), {"result": result, "as_events": as_events, "sent": 0})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/mcp", handler
        finally:
            server.shutdown()


async def called(url: str) -> ToolResult:
    """Return the result of a call of the server's tool, of which the caller is told."""
    async with McpServer(url=url, name="evil").open() as tools:
        model = ScriptedModel(ToolCallRequest("c1", "get", {}, ""), "Done.", "I am here.")

        async def answer(call: Call) -> None:
            call.converse(ChatNode(model, tools=tools))

        async with open_call(answer, audio=False, expect_errors=True) as caller:
            with trio.fail_after(LIMIT_S):
                await caller.says("go", takes_s=0.01)
                result = await caller.receives(ToolResult)
                await caller.quiet()
                await caller.says("and?", takes_s=0.01)
                await caller.quiet()
            assert caller.heard.endswith("I am here.")
            return result


# The SDK leaves the streams of events to the garbage collector.
pytestmark = [
    pytest.mark.proof,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.parametrize("as_events", [False, True])
@pytest.mark.parametrize("kind", READ)
async def test_what_other_readers_of_json_follow_is_read(kind: str, as_events: bool):
    """A half character in an answer is replaced, as it is for a server that is a program."""
    answer, text = READ[kind]
    with serving(answer, as_events=as_events) as (url, _):
        result = await called(url)
    assert (result.content, result.error) == (text, False)


@pytest.mark.parametrize("as_events", [False, True])
@pytest.mark.parametrize("kind", UNREAD)
async def test_an_answer_that_nobody_can_read_ends_its_call_only(kind: str, as_events: bool):
    """The tool fails in our words, which quote nothing of the answer, and the call goes on."""
    with serving(UNREAD[kind], as_events=as_events) as (url, _):
        result = await called(url)
    assert result.error
    assert "was answered, but" in result.content
    assert len(result.content) < 300


@pytest.mark.parametrize("as_events", [False, True])
async def test_an_endless_answer_is_not_read_to_its_end(as_events: bool):
    """The connection ends at a bound, far below the memory of the machine."""
    with serving(None, as_events=as_events) as (url, handler):
        result = await called(url)
    assert result.error
    assert result.outcome == "effect_unknown" or not as_events
    assert handler.sent < 100 << 20


async def test_a_packed_answer_is_refused():
    """A megabyte that becomes a gigabyte is not unpacked: packing was not asked for."""
    text = f'{{"content": [{{"type": "text", "text": "{"x" * (200 << 20)}"}}]}}'
    with serving(text, as_events=False) as (url, handler):
        handler.packs = True
        result = await called(url)
    assert result.error
    assert len(result.content) < 300
