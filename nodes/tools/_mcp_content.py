"""Converts results of an MCP server to text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bargein.bridge.validation.foreign_data import MOST_NESTING, is_deep
from bargein.nodes._excerpt import bounded

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

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
