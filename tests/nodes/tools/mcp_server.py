"""An MCP server on the SDK's own server side, for the tests: ``python mcp_server.py [--http]``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Annotated, Literal

import anyio
from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp_types import ToolAnnotations
from pydantic import BaseModel

# The notes of a server to its client are deprecated in the newest protocol, and still in use.
warnings.simplefilter("ignore")
server = MCPServer("test")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(name="say/hello.v1")
def hello(name: str = "you") -> str:
    """Greet."""
    return f"hello {name}"


@server.tool()
async def count(steps: int, context: Context) -> str:
    """Count, and report progress."""
    for step in range(1, steps + 1):
        await context.report_progress(step, steps, f"step {step}")
        await context.info(f"counted {step}")
    return "counted"


@server.tool()
async def wait(path: str) -> str:
    """Wait to be cancelled, and write the outcome to a file."""
    write(path, "began")
    try:
        await anyio.sleep(60)
    except BaseException:
        write(path, "cancelled")
        raise
    return "never"


def write(path: str, text: str) -> None:
    Path(path).write_text(text)


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("no such table")


class Seat(BaseModel):
    row: int
    side: Literal["window", "aisle"]


def ask_for_seat() -> Elicit[Seat]:
    return Elicit("Which seat?", Seat)


@server.tool()
async def book(seat: Annotated[ElicitationResult[Seat], Resolve(ask_for_seat)]) -> str:
    """Book a seat; asks which."""
    return f"{seat.action} {getattr(seat, 'data', None)!r}"


@server.tool()
def picture() -> Image:
    """Return content that is not text."""
    return Image(data=b"12345", format="png")


@server.tool()
def where() -> str:
    """Tell where it runs, and what it was given."""
    secret = os.environ.get("MCP_TEST_SECRET", "nothing")
    return f"{Path.cwd()} {os.environ.get('MCP_TEST', 'nothing')} {secret}"


@server.tool()
def die(code: int) -> str:
    """End the process in the middle of a call."""
    os._exit(code)


def serve_http() -> None:
    import socket

    import uvicorn

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        app = server.streamable_http_app()
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if "--http" in sys.argv:
    serve_http()
elif "--deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    Path(sys.argv[-1]).write_text(f"{os.getpid()} {child.pid}")
    server.run()
    time.sleep(60)
else:
    server.run()
