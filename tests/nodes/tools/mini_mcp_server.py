"""An MCP server of the handshake era without the SDK, for the tests: it starts at once.

``python mini_mcp_server.py [mute | broken | endless | listless]``
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else ""
NAMES = ["echo", "a.b", "a/b", "x" * 70, "die", "orphan", "stuck", "refuse", "fail", "count", "odd"]
NAMES += ["stop", "garbage", "pid", "nap", "flood", "give"]
NAMES += ["ask"]
NAMES += ["people", "refers", "wordy"]
PERSON = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}}
SCHEMAS = {
    "odd": {"text": {"type": "no such type"}},
    "people": {"people": {"type": "array", "items": PERSON}},
    "refers": {"a": {"$ref": "https://example.com/schema"}},
}


def tool(name: str) -> dict[str, object]:
    properties = {"text": {"type": "string"}, "times": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "required": ["text"]}
    if name in SCHEMAS:
        schema = {"type": "object", "properties": SCHEMAS[name]}
    words = "x" * 100_000 if name == "wordy" else ""
    return {"name": name, "inputSchema": schema, "description": words}


def count(token: object) -> None:
    """Report progress, not always in order."""
    for progress in (1, 3, 2):
        params = {"progressToken": token, "progress": progress}
        note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        print(json.dumps(note), flush=True)


def ask(params: str) -> str:
    """Ask the client something, and return what it answers."""
    request = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create"}
    print(json.dumps(request | {"params": json.loads(params)}), flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "q":
            return json.dumps(message.get("result") or message.get("error"))
    return "nobody"


def called(name: str, arguments: dict[str, str]) -> dict[str, object]:
    if name == "die":
        os._exit(3)
    if name == "orphan":  # what it leaves behind holds its output open
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"])
        os._exit(4)
    if name == "stuck":
        time.sleep(30)
    if name == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if name == "garbage":
        os.write(1, b"this is no message at all")
        time.sleep(60)
    while name == "flood":
        os.write(1, b"x" * (1 << 16))
    if name == "give":
        return json.loads(arguments["text"])
    if name == "nap":
        time.sleep(1)
    if name == "ask":
        return {"content": [{"type": "text", "text": ask(arguments["text"])}]}
    if name == "pid":
        return {"content": [{"type": "text", "text": str(os.getpid())}]}
    if name == "fail":
        return {"content": [{"type": "text", "text": "no such table"}], "isError": True}
    print("this is no message")
    return {"content": [{"type": "text", "text": f"{name}: {arguments.get('text')}"}]}


def answer(method: str, params: dict[str, object]) -> dict[str, object]:
    if method == "initialize":
        version = "2025-11-25"
        info = {"name": "mini", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list" and MODE != "listless":
        page = {"tools": [tool(name) for name in NAMES]}
        return page | ({"nextCursor": "on"} if MODE == "endless" else {})
    if method == "tools/call" and params["name"] != "refuse":
        if params["name"] == "count":
            count(params["_meta"]["progressToken"])  # type: ignore[index]
        return called(params["name"], params["arguments"])  # type: ignore[arg-type]
    raise LookupError(method)


if MODE == "broken":
    print("no such database", file=sys.stderr)
    sys.exit(2)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or MODE == "mute":
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        reply["result"] = answer(message["method"], message.get("params", {}))
    except LookupError as error:
        reply["error"] = {"code": -32601, "message": f"unknown: {error}"}
    print(json.dumps(reply), flush=True)
