"""Makes the results of MCP servers readable that leave out or change what the protocol asks for."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

SendRequest = Callable[..., Awaitable[Any]]


def reads_all_results(send: SendRequest) -> SendRequest:
    """Return the SDK's function that sends requests, with results of tools made readable.

    Args:
        send: Takes the method, its parameters and the SDK's options.
    """

    async def send_request(method: str, *rest: Any, **options: Any) -> Any:
        result = await send(method, *rest, **options)
        return readable(result) if method == "tools/call" else result

    return send_request


def readable(result: Any) -> Any:
    """Return a result of a tool as the protocol wants it: with a list of content, of known kinds.

    A result without content keeps its structured content; what is no content is shown as JSON.
    """
    if not isinstance(result, dict):
        return {"content": [_shown(result)]}
    if result.get("resultType") == "input_required":
        return result
    content = result.get("content")
    blocks = content if isinstance(content, list) else [] if content is None else [content]
    told = {**result, "content": [_block(block) for block in blocks]}
    if "isError" in told and not isinstance(told["isError"], bool):
        told["isError"] = bool(told["isError"])
    return told


def _block(block: Any) -> Any:
    """Return a block of content that the SDK reads."""
    from mcp_types import ContentBlock
    from pydantic import TypeAdapter, ValidationError

    if isinstance(block, Mapping):
        text = block.get("text")
        if isinstance(text, str) and block.get("type") in (None, "", "text"):
            return {"type": "text", "text": text}
        try:
            TypeAdapter(ContentBlock).validate_python(block, by_name=False)
        except ValidationError:
            return _shown(block)
        return block
    return _shown(block)


def _shown(value: Any) -> dict[str, str]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return {"type": "text", "text": text}
