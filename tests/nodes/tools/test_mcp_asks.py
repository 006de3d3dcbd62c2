"""What MCP servers ask the user while their tools run; the servers are real processes here."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from bargein import Call, ChatNode
from bargein.events import QuestionAsked, QuestionClosed, ToolResult
from bargein.testing import Caller, ScriptedModel, calls, open_call
from bargein.tools import McpServer

pytestmark = pytest.mark.proof

HERE = Path(__file__).parent
SDK_SERVER = [sys.executable, str(HERE / "mcp_server.py")]
MINI_SERVER = [sys.executable, str(HERE / "mini_mcp_server.py")]
LIMIT_S = 60.0

ROW = {"type": "integer", "description": "Which row?"}
SIDE = {"type": "string", "enum": ["window", "aisle"]}


def form(**fields: Any) -> str:
    schema = {"type": "object", "properties": fields}
    return json.dumps({"message": "Your seat, please.", "requestedSchema": schema})


@asynccontextmanager
async def plane(server: McpServer, call: str, **arguments: Any) -> AsyncIterator[Caller]:
    """Open a call with an agent that calls one tool of a server."""
    model = ScriptedModel([calls(call, **arguments)], "Well.", then="Yes?")
    with trio.fail_after(LIMIT_S):
        async with server.open() as tools:

            async def answer(seat: Call) -> None:
                seat.converse(ChatNode(model, tools=tools))

            async with open_call(answer, audio=False) as caller:
                yield caller


async def says(caller: Caller, *answers: str) -> list[str]:
    """Have the tool called, answer each question, and return what was asked."""
    caller.call.handle.send_input("A seat, please.")
    for count, text in enumerate(answers, start=1):
        while len(caller.events(QuestionAsked)) < count:  # noqa: ASYNC110 - a process sets no event
            await trio.sleep(0.01)
        caller.call.handle.send_input(text)
    if not caller.events(ToolResult):
        await caller.receives(ToolResult)
    return [question.text for question in caller.events(QuestionAsked)]


def told(caller: Caller) -> str:
    [result] = caller.events(ToolResult)
    return result.content


async def test_a_server_of_the_newest_protocol_asks() -> None:
    """Each field that it requires is a question; the tool goes on with the answers."""
    async with plane(McpServer(SDK_SERVER, may_ask=True), "book") as caller:
        asked = await says(caller, "row 12", "the window")
        assert asked == ["Which seat? Row", "Side"]
        assert told(caller) == "accept Seat(row=12, side='window')"


@pytest.mark.parametrize(
    ("fields", "answers", "questions", "action", "content"),
    [
        ({"row": ROW}, ["twelve", "12"], 2, "accept", {"row": 12}),
        ({"row": ROW}, ["never mind"], 1, "decline", None),
        ({"row": ROW}, ["I do not know", "by the window"], 2, "cancel", None),
        ({"side": SIDE}, ["the second one"], 1, "accept", {"side": "aisle"}),
        ({"meal": {"type": "boolean"}}, ["no"], 1, "accept", {"meal": False}),
        ({"kg": {"type": "number"}}, ["7.5 kilos"], 1, "accept", {"kg": 7.5}),
        ({"name": {"type": "string"}}, ["Ada"], 1, "accept", {"name": "Ada"}),
        ({}, ["yes please"], 1, "accept", {}),
        ({}, ["no"], 1, "decline", None),
        ({f"f{n}": ROW for n in range(6)}, [], 0, "cancel", None),
        ({"all": {"type": "array", "items": SIDE}}, [], 0, "cancel", None),
    ],
)  # fmt: skip
async def test_what_the_server_is_told(
    fields: dict[str, Any], answers: list[str], questions: int, action: str, content: Any
) -> None:
    """A server with the older protocol gets values of the right types, or the outcome."""
    async with plane(McpServer(MINI_SERVER, may_ask=True), "ask", text=form(**fields)) as caller:
        asked = await says(caller, *answers)
        assert len(asked) == questions
        given = json.loads(told(caller))
        assert (given["action"], given.get("content")) == (action, content)


async def test_a_page_is_opened_for_nobody() -> None:
    """A question that needs a browser is cancelled at once."""
    params = {"mode": "url", "message": "Sign in.", "url": "https://example.com",
              "elicitationId": "1"}  # fmt: skip
    async with plane(
        McpServer(MINI_SERVER, may_ask=True), "ask", text=json.dumps(params)
    ) as caller:
        assert await says(caller) == []
        assert json.loads(told(caller))["action"] == "cancel"


async def test_an_interrupt_ends_the_question() -> None:
    """A tool that is cut while it asks leaves no question open."""
    async with plane(McpServer(MINI_SERVER, may_ask=True), "ask", text=form(row=ROW)) as caller:
        caller.call.handle.send_input("A seat, please.")
        await caller.receives(QuestionAsked)
        await caller.call.handle.cancel().settled
        assert [closed.outcome for closed in caller.events(QuestionClosed)] == ["withdrawn"]


async def test_a_server_that_may_not_ask() -> None:
    """Unless the app allows it, a server learns that nobody can be asked."""
    async with plane(McpServer(MINI_SERVER), "ask", text=form(row=ROW)) as caller:
        assert await says(caller) == []
        assert "not supported" in json.loads(told(caller))["message"]
