"""What passes between a model and an MCP server: results as text, arguments checked by schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import structlog

from bargein.nodes.processes import Excerpt

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

_log = structlog.get_logger()
_MOST_COMPLAINTS = 5


MOST_OF_RESULT = (8_000, 8_000)
"""Characters kept of the beginning and the end of a result, as of what a command writes."""

MOST_OF_DESCRIPTION = (3_000, 1_000)
"""Of the description of a tool; it is sent with every question to the model."""

MOST_OF_SCHEMA = 32_000
"""Characters of the schema of a tool's arguments, as JSON; a longer one is not offered."""


def bounded(text: str, most: tuple[int, int]) -> str:
    """Return a text with its middle left out if it is long, and a word on that."""
    if len(text) <= sum(most):
        return text
    excerpt = Excerpt(*most)
    excerpt.add(text)
    return str(excerpt)


def result_text(result: CallToolResult) -> str:
    """Return what the model is told of a result, with its middle left out if it is long.

    Text comes as it is.  What is no text is named with its type and size, since a model that calls
    tools reads text.  Structured content is shown where no text says the same, as the specification
    asks servers to do.
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
        """Compile a schema; one that is none checks nothing, and the log says so.

        References to other documents are not followed.

        Args:
            server: The server's name, for the log.
            tool: The tool's name, for the log.
            schema: What the server says the arguments are like.
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
        """Say what is wrong with arguments, one line for each place, at most five."""
        from referencing.exceptions import Unresolvable

        if self._validator is None:
            return []
        try:
            errors = sorted(self._validator.iter_errors(dict(arguments)), key=lambda e: e.json_path)
        except Unresolvable as error:  # the server will check them itself
            self._log.warning("mcp_schema_is_invalid", problem=f"reference to {error.ref!r}")
            return []
        return [f"{_place(error.json_path)}{error.message}" for error in errors[:_MOST_COMPLAINTS]]


def _place(json_path: str) -> str:
    return f"{json_path.removeprefix('$.')}: " if json_path != "$" else ""
