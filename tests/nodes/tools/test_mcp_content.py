"""What passes between a model and an MCP server, without a server."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import CallToolResult
from structlog.testing import capture_logs

from bargein.nodes.tools._mcp_content import (
    MOST_OF_DESCRIPTION,
    ArgumentCheck,
    bounded,
    result_text,
)


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "text", "text": "plain"}, "plain"),
        (
            {"type": "audio", "data": "MTIzNA==", "mimeType": "audio/wav"},
            "[audio audio/wav, 4 bytes]",
        ),
        (
            {"type": "resource_link", "name": "menu", "uri": "file:///menu", "description": "food"},
            "[resource menu at file:///menu: food]",
        ),
        (
            {"type": "resource_link", "name": "menu", "uri": "file:///menu"},
            "[resource menu at file:///menu]",
        ),
        ({"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}, "inside"),
        (
            {"type": "resource", "resource": {"uri": "file:///a", "blob": "MTIzNDU="}},
            "[resource at file:///a, binary, 5 bytes]",
        ),
    ],
)
def test_a_block_of_a_result(block: dict[str, Any], text: str) -> None:
    """Text is given as it is; all else is named."""
    result = CallToolResult.model_validate({"content": [block]})
    assert result_text(result) == text


def test_blocks_and_structured_content() -> None:
    """Blocks are lines; structured content counts where there is no block."""
    lines = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    structured = {"name": "Zoë"}
    both = CallToolResult.model_validate({"content": lines, "structuredContent": structured})
    alone = CallToolResult.model_validate({"content": [], "structuredContent": structured})
    empty = CallToolResult.model_validate({"content": []})
    assert [result_text(r) for r in (both, alone, empty)] == ["one\ntwo", '{"name": "Zoë"}', ""]


def test_complaints_name_the_place() -> None:
    """What is wrong with arguments is said with its place, for at most five places."""
    person = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}}
    schema = {"type": "object", "properties": {"people": {"type": "array", "items": person}}}
    check = ArgumentCheck("s", "t", schema)
    assert check.complaints({"people": [{"age": 3}]}) == []
    assert check.complaints({"people": [{"age": -1}, {"age": "x"}]}) == [
        "people[0].age: -1 is less than the minimum of 0",
        "people[1].age: 'x' is not of type 'integer'",
    ]
    assert len(check.complaints({"people": [{"age": -1}] * 9})) == 5


def test_a_reference_to_another_document() -> None:
    """A schema that refers to another document is not followed: the server checks by itself."""
    there = {"properties": {"a": {"$ref": "https://example.com/schema"}}}
    with capture_logs() as logs:
        assert ArgumentCheck("s", "t", there).complaints({"a": 1}) == []
    assert [entry["event"] for entry in logs] == ["mcp_schema_is_invalid"]


def test_a_broken_schema() -> None:
    """A schema that is none checks nothing, and the log names the tool."""
    with capture_logs() as logs:
        check = ArgumentCheck("s", "t", {"type": "no such type"})
    assert check.complaints({"a": 1}) == []
    assert [(entry["server"], entry["tool"]) for entry in logs] == [("s", "t")]


def test_a_long_result_has_its_middle_left_out() -> None:
    """A server cannot fill the model's context: beginning and end are kept, as of a command."""
    long = {"type": "text", "text": "a" * 10_000 + "b" * 1_000_000 + "c" * 10_000}
    for given in ({"content": [long]}, {"content": [], "structuredContent": {"x": long["text"]}}):
        text = result_text(CallToolResult.model_validate(given))
        assert len(text) < 16_200
        assert "a" * 7_900 in text
        assert "c" * 7_900 in text


def test_a_long_description_is_bounded() -> None:
    """It is sent with every question to the model."""
    assert bounded("x" * 100_000, MOST_OF_DESCRIPTION).count("x") <= 4_001
    assert bounded("short", MOST_OF_DESCRIPTION) == "short"
