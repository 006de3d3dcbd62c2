"""Arguments that a model encoded twice reach the tool as what its schema says."""

from __future__ import annotations

import json
from typing import Any

import pydantic
import pytest
import trio

from bargein import ChatNode
from bargein.llm import ToolCallRequest
from bargein.testing import ScriptedModel, open_call
from bargein.tools import Tool, tool


class Line(pydantic.BaseModel):
    """A line of an order."""

    what: str
    sizes: list[int] = []


async def given(tools, name, arguments) -> None:
    """Let a model call a tool with these arguments."""
    raw = json.dumps(arguments)
    model = ScriptedModel([ToolCallRequest("x", name, arguments, raw)], then="Done.")

    async def answer(call) -> None:
        call.converse(ChatNode(model, "p", tools=tools))

    async with open_call(answer, audio=False) as caller:
        await caller.says("a latte", takes_s=0.5)
        await trio.sleep(5)


LINE = {"what": "latte", "sizes": [1]}


@pytest.mark.parametrize(
    ("arguments", "got"),
    [
        ({"items": '["latte"]'}, {"items": ["latte"]}),
        ({"items": ["[1]"], "note": "[1]"}, {"items": ["[1]"], "note": "[1]"}),
        ({"items": [], "lines": json.dumps([LINE])}, {"items": [], "lines": [LINE]}),
        ({"items": [], "lines": [json.dumps(LINE)]}, {"items": [], "lines": [LINE]}),
        ({"items": [], "lines": [{**LINE, "sizes": "[1]"}]}, {"items": [], "lines": [LINE]}),
        ({"items": [], "line": json.dumps(LINE)}, {"items": [], "line": LINE}),
        ({"items": [], "line": "null"}, {"items": []}),
        ({"items": [], "either": '["a"]'}, {"items": [], "either": '["a"]'}),
        ({"items": [], "by_name": '{"a": "[1]"}'}, {"items": [], "by_name": {"a": [1]}}),
    ],
)
async def test_json_in_a_text_is_unwrapped_where_no_text_is_wanted(autojump_clock, arguments, got):
    """At every depth; a text stays a text."""
    ran: list[dict[str, Any]] = []

    @tool(read_only=True)
    async def order(
        items: list[str],
        note: str = "",
        lines: tuple[Line, ...] = (),
        line: Line | None = None,
        either: str | list[str] = "",
        by_name: dict[str, list[int]] | None = None,
    ) -> str:
        """Order."""
        told = {
            "items": items, "note": note, "lines": [one.model_dump() for one in lines],
            "line": line and line.model_dump(), "either": either, "by_name": by_name,
        }  # fmt: skip
        ran.append({name: value for name, value in told.items() if value or name == "items"})
        return "ordered"

    await given([order], "order", arguments)
    assert ran == [got]


class Foreign(Tool):
    """A tool whose schema comes from elsewhere."""

    def __init__(self, schema) -> None:
        super().__init__("foreign", parameters=schema)
        self.ran: list[dict] = []

    async def run(self, context, arguments):
        self.ran.append(arguments)
        return "done"


@pytest.mark.parametrize(
    ("schema", "value", "got"),
    [
        ({"type": "array"}, "[1]", [1]),
        ({"type": ["object", "null"]}, '{"a": 1}', {"a": 1}),
        ({"type": "integer"}, "5", 5),
        ({"type": "number"}, "5", 5),
        ({"type": "boolean"}, "true", True),
        ({"type": "integer"}, "five", "five"),
        ({"type": "array"}, '{"a": 1}', '{"a": 1}'),
        ({"type": "array"}, "[1", "[1"),
        ({"type": ["string", "array"]}, "[1]", "[1]"),
        ({"anyOf": [{"type": "array"}, {"type": "string"}]}, "[1]", "[1]"),
        ({"anyOf": [{"$ref": "#/$defs/list"}, {"type": "null"}]}, "[1]", [1]),
        ({"$ref": "#/$defs/loop"}, "[1]", "[1]"),
        ({"$ref": "#/nowhere"}, "[1]", "[1]"),
        ({}, "[1]", "[1]"),
        (5, "[1]", "[1]"),
        ({"type": 5}, "[1]", "[1]"),
        ({"enum": ["[1]"]}, "[1]", "[1]"),
    ],
)
async def test_a_foreign_schema_is_followed(autojump_clock, schema, value, got):
    """As far as it says what it wants; what is wrong in it changes nothing."""
    defs = {"list": {"type": "array"}, "loop": {"$ref": "#/$defs/loop"}}
    foreign = Foreign({"type": "object", "properties": {"it": schema}, "$defs": defs})
    await given([foreign], "foreign", {"it": value})
    assert foreign.ran == [{"it": got}]
