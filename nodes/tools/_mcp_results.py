"""Reads results of MCP servers as text for a model, also those that differ from the protocol."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from bargein.bridge.validation.foreign_data import MOST_NESTING, is_deep
from bargein.nodes._excerpt import bounded

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

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


MOST_OF_RESULT = (8_000, 8_000)
"""How many characters of a result's beginning and end are kept; the same as for commands."""

MOST_OF_DESCRIPTION = (3_000, 1_000)
"""The same for a tool's description, which is sent with every request to the model."""

MOST_OF_SCHEMA = 32_000
"""The longest schema of arguments, in characters of JSON; a tool with a longer one is not
offered."""


def schema_problem(schema: Mapping[str, Any]) -> str:
    """Return why a schema is not given to models; empty for no reason."""
    if is_deep(schema, MOST_NESTING):
        return f"its schema is nested more than {MOST_NESTING} deep"
    if len(json.dumps(schema)) > MOST_OF_SCHEMA:
        return f"its schema is over {MOST_OF_SCHEMA} characters"
    return ""


def result_text(result: CallToolResult) -> str:
    """Return a result as text for the model, with its middle left out if it is long.

    Text stays as it is. Other content is named with its type and size, since models read text.
    Structured content is shown only if there is no text; the specification asks servers to send
    both.
    """
    blocks = [_block_text(block) for block in result.content]
    if not blocks and result.structured_content is not None:
        blocks = [json.dumps(result.structured_content, ensure_ascii=False)]
    return bounded("\n".join(blocks), MOST_OF_RESULT)


def _block_text(block: ContentBlock) -> str:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return f"[{block.type} {block.mime_type}, {_decoded_size(block.data)} bytes]"
        case "resource_link":
            about = f": {block.description}" if block.description else ""
            return f"[resource {block.name} at {block.uri}{about}]"
        case "resource":
            resource = block.resource
            text = getattr(resource, "text", None)
            if isinstance(text, str):
                return text
            size = _decoded_size(getattr(resource, "blob", ""))
            return f"[resource at {resource.uri}, {resource.mime_type or 'binary'}, {size} bytes]"


def _decoded_size(base64_text: str) -> int:
    return len(base64_text.rstrip("=")) * 3 // 4
