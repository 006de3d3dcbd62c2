"""Converts results of an MCP server to text and checks arguments against its schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import structlog

from bargein.nodes.processes._process_output import Excerpt

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

_log = structlog.get_logger()
_MOST_COMPLAINTS = 5


MOST_OF_RESULT = (8_000, 8_000)
"""How many characters of a result's beginning and end are kept; the same as for commands."""

MOST_OF_DESCRIPTION = (3_000, 1_000)
"""The same for a tool's description, which is sent with every request to the model."""

MOST_OF_SCHEMA = 32_000
"""The longest schema of arguments, in characters of JSON; a tool with a longer one is not
offered."""


def bounded(text: str, most: tuple[int, int]) -> str:
    """Return a text, with its middle replaced by a note if it is long."""
    if len(text) <= sum(most):
        return text
    excerpt = Excerpt(*most)
    excerpt.add(text)
    return str(excerpt)


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


class ArgumentCheck:
    """The JSON schema of a tool's arguments, ready to check."""

    def __init__(self, server: str, tool: str, schema: Mapping[str, Any]) -> None:
        """Compile a schema; an invalid one is logged and checks nothing.

        References to other documents are not followed.

        Args:
            server: The server's name, for the log.
            tool: The tool's name, for the log.
            schema: The JSON schema of the arguments, from the server.
        """
        from jsonschema import SchemaError
        from jsonschema.validators import validator_for
        from referencing import Registry

        self._log = _log.bind(server=server, tool=tool)
        self._validator: Any = None
        kind = validator_for(schema)
        try:
            kind.check_schema(dict(schema))
        except SchemaError as error:
            self._log.warning("mcp_schema_is_invalid", problem=error.message)
        else:
            self._validator = kind(schema, registry=Registry())

    def complaints(self, arguments: Mapping[str, Any]) -> list[str]:
        """Return what is wrong with some arguments, one line for each place, at most five."""
        from referencing.exceptions import Unresolvable

        if self._validator is None:
            return []
        try:
            errors = sorted(self._validator.iter_errors(dict(arguments)), key=lambda e: e.json_path)
        except Unresolvable as error:  # the server checks them itself
            self._log.warning("mcp_schema_is_invalid", problem=f"reference to {error.ref!r}")
            return []
        return [f"{_place(error.json_path)}{error.message}" for error in errors[:_MOST_COMPLAINTS]]


def _place(json_path: str) -> str:
    return f"{json_path.removeprefix('$.')}: " if json_path != "$" else ""
