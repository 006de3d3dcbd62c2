"""Asks the caller an MCP server's questions during a tool call (``elicitation/create``).

Rules, after the protocol's revision of 2025-11-25, "Elicitation":
1. Each required field is one question to the caller; if none is required, every field is. A form
   without fields asks for a yes.
2. The reply is ``accept`` with a value for each field, ``decline`` if the caller declines a
   question or says no, and ``cancel`` otherwise: silence, an interrupt, two answers that do not
   fit, a form that cannot be spoken, a page to open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bargein.nodes._excerpt import bounded
from bargein.routes import BargeinError
from bargein.routes.logs import get_logger

if TYPE_CHECKING:
    from mcp_types import ElicitRequestParams, ElicitResult

    from ._tool_context import ToolContext

_log = get_logger()

MOST_FIELDS = 5
"""More fields than anybody answers on the telephone."""

MOST_OF_QUESTION = (400, 100)
"""How many characters of a question's beginning and end are said."""

_TRIES = 2

_SAYABLE = ("string", "integer", "number")

_YES, _NO = "Yes", "No"

Value = str | int | float | bool


class _NoAnswerError(BargeinError):
    """There is no value; the action is the reply to the server."""


async def answer_server(params: ElicitRequestParams, context: ToolContext) -> ElicitResult:
    """Ask the caller a server's questions, and return the reply to the server.

    Cancelling withdraws the question.

    Args:
        params: The server's questions.
        context: The context of the tool that the server runs.
    """
    from mcp_types import ElicitRequestFormParams, ElicitResult

    if not isinstance(params, ElicitRequestFormParams):
        _log.warning("mcp_question_not_asked", tool=context.name, reason="a page to be opened")
        return ElicitResult(action="cancel")
    schema: Mapping[str, Any] = dict(params.requested_schema)
    fields = _fields(schema)
    if len(fields) > MOST_FIELDS:
        _log.warning("mcp_question_not_asked", tool=context.name, reason=f"{len(fields)} fields")
        return ElicitResult(action="cancel")
    try:
        if not fields:
            if not await _ask(context, params.message, {"type": "boolean"}):
                return ElicitResult(action="decline")
            return ElicitResult(action="accept", content={})
        content: dict[str, str | int | float | bool | list[str] | None] = {}
        for name, field in fields.items():
            asked = [params.message] if not content else []
            if len(fields) > 1:
                asked.append(str(field.get("description") or field.get("title") or name))
            content[name] = await _ask(context, " ".join(asked), field)
    except _NoAnswerError as given_up:
        return ElicitResult(action="decline" if str(given_up) == "withdrawn" else "cancel")
    return ElicitResult(action="accept", content=content)


def _fields(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the fields to ask for, by name."""
    properties = schema.get("properties") or {}
    required = schema.get("required") or list(properties)
    return {name: dict(properties[name]) for name in properties if name in required}


async def _ask(context: ToolContext, text: str, field: Mapping[str, Any]) -> Value:
    """Ask for the value of a field.

    Raises:
        _NoAnswerError: There is none.
    """
    choices = _choices(field)
    if not choices and field.get("type") not in _SAYABLE:
        raise _NoAnswerError("one spoken answer cannot choose several values of a list")
    for _ in range(_TRIES):
        answer = await context.ask(bounded(text, MOST_OF_QUESTION), choices=list(choices))
        if answer.outcome != "answered":
            raise _NoAnswerError(answer.outcome)
        value = choices.get(answer.choice or "") if choices else _value(answer.text, field)
        if value is not None:
            return value
    raise _NoAnswerError("does not fit")


def _choices(field: Mapping[str, Any]) -> dict[str, Value]:
    """Return the possible values by the choices that the caller is offered; empty for any value."""
    if field.get("type") == "boolean":
        return {_YES: True, _NO: False}
    titled = field.get("oneOf") or ()
    if titled:
        return {str(one.get("title") or one["const"]): one["const"] for one in titled}
    values = field.get("enum") or ()
    names = field.get("enumNames") or values
    return {str(name): value for name, value in zip(names, values, strict=False)}


def _value(text: str, field: Mapping[str, Any]) -> Value | None:
    """Convert an answer to the type of a field; return None if it does not fit."""
    match field.get("type"):
        case "string":
            return text
        case "integer" | "number" as kind:
            numbers = re.findall(r"-?\d+(?:\.\d+)?", text)
            if len(numbers) != 1 or (kind == "integer" and "." in numbers[0]):
                return None
            return int(numbers[0]) if kind == "integer" else float(numbers[0])
    return None
