"""The watch socket: operators see their questions of all calls, and answer them.

Rule 1. It shows only questions with ``by="operator"``, and only to callers with that right.
Rule 2. An operator that reads too slowly loses its connection; no call waits for it.
Rule 3. A connection ends with the token that opened it; what comes later is not read.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal, final

import trio
from pydantic import Field, ValidationError

from bargein.routes import Message

from ..control._tool_permissions import PermissionQuestion
from ..events import (
    JobAnnounced,
    JobFinished,
    PermissionAnswered,
    PermissionRequested,
    ToolCall,
    ToolOutput,
    ToolProgress,
    ToolResult,
)
from ..websocket import Connection, Data
from ._call_connection import REFUSED
from ._message_base import JsonObject, Wire
from ._outbox import Outbox

if TYPE_CHECKING:
    from .. import Call

MAX_OPERATORS = 16
"""Operators at the same time."""

OPERATORS_PER_USER = 2
"""Of these, those of one user: one on each of two screens, or a new one beside one that is lost."""

MAX_WAITING_BYTES = 1_000_000

TOO_SLOW = 1013
"""Close code of an operator who reads too slowly (try again later)."""


class OperatorQuestion(Wire):
    """A tool waits for an operator's permission."""

    type: Literal["question"] = "question"
    call: str
    user: str
    """The user of the call's identity; empty for nobody in particular."""
    id: str
    tool: str
    arguments: JsonObject


class OperatorQuestionClosed(Wire):
    """A question was answered or withdrawn."""

    type: Literal["closed"] = "closed"
    call: str
    id: str
    verdict: Literal["allowed", "denied", "withdrawn"]


class OperatorAnswer(Wire):
    """Answers a question."""

    type: Literal["permission"]
    call: Annotated[str, Field(max_length=64)]
    id: Annotated[str, Field(max_length=256)]
    allow: bool


class OperatorError(Wire):
    """An answer that was not accepted."""

    type: Literal["error"] = "error"
    message: str


@final
class _Operator:
    """One connection of an operator."""

    def __init__(self, connection: Connection, user: str) -> None:
        self.user = user
        self.outbox = Outbox(
            max_bytes=MAX_WAITING_BYTES, on_broken=lambda: connection.end_with(TOO_SLOW, "too slow")
        )
        self._connection = connection
        self.ending = trio.CancelScope()

    async def end_later(self, lasts_s: float) -> None:
        """End the connection once its time is over, or ``ending`` is cancelled.

        Args:
            lasts_s: The time, in seconds; infinite for no end.
        """
        reason = "you were sent away"
        with self.ending:
            await trio.sleep(lasts_s)
            reason = "the token has expired"
        self._connection.end_with(REFUSED, reason)
        self.outbox.close()
        await trio.sleep(self._connection.close_s)
        self._connection.cut()


@final
class Operators:
    """The operators of a server, and the calls whose questions they answer."""

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}
        self._operators: set[_Operator] = set()

    def why_not(self, user: str) -> str:
        """Return why a user is not admitted now; empty if it is."""
        if len(self._operators) >= MAX_OPERATORS:
            return "too many operators"
        if sum(one.user == user for one in self._operators) >= OPERATORS_PER_USER:
            return f"a user watches over {OPERATORS_PER_USER} connections at most"
        return ""

    def attend(self, call: Call) -> None:
        """Show a call's questions to the operators from now on."""
        self._calls[call.call_id] = call

        def asked(message: Message) -> None:
            if message.event.by == "operator":
                question = call.permissions.question(message.event.id)
                if question is not None:
                    self._broadcast(_question_message(call, question))

        def closed(message: Message) -> None:
            event = message.event
            if event.by == "operator":
                self._broadcast(
                    OperatorQuestionClosed(call=call.call_id, id=event.id, verdict=event.verdict)
                )

        call.router.observe(PermissionRequested, asked)
        call.router.observe(PermissionAnswered, closed)

    def leave(self, call_id: str) -> None:
        """Forget a call that is over."""
        self._calls.pop(call_id, None)

    def end(self, user: str) -> None:
        """End the connections of a user."""
        for operator in self._operators:
            if operator.user == user:
                operator.ending.cancel(reason="the user is sent away")

    async def serve(self, connection: Connection, user: str, lasts_s: float = math.inf) -> None:
        """Serve one operator's connection until it is over.  Cancelling this is safe.

        Args:
            connection: Open.
            user: Whose it is.
            lasts_s: After how many seconds it ends; infinite for never.
        """
        operator = _Operator(connection, user)
        outbox = operator.outbox
        for call in self._calls.values():
            for question in call.permissions.pending:
                if question.by == "operator":
                    outbox.enqueue(_question_message(call, question).model_dump_json())

        def receive(data: Data) -> None:
            problem = "" if outbox.is_closed else self._handle(data)
            if problem:
                outbox.enqueue(OperatorError(message=problem).model_dump_json())

        self._operators.add(operator)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(operator.end_later, lasts_s)
                await connection.run(outbox, receive)
                nursery.cancel_scope.cancel(reason="the connection is over")
        finally:
            self._operators.remove(operator)

    def _handle(self, data: Data) -> str:
        """Apply an operator's message; return what is wrong with it, empty for nothing."""
        try:
            answer = OperatorAnswer.model_validate_json(data)
        except ValidationError:
            return "an answer is {type: permission, call, id, allow}"
        call = self._calls.get(answer.call)
        question = None if call is None else call.permissions.question(answer.id)
        if call is None or question is None or question.by != "operator":
            return f"the question {answer.id!r} is no longer open"
        call.permissions.respond(answer.id, answer.allow)
        return ""

    def _broadcast(self, message: Wire) -> None:
        text = message.model_dump_json()
        for operator in tuple(self._operators):
            operator.outbox.enqueue(text)


def is_operators(event: object) -> bool:
    """Whether an event is only for operators: their questions, their answers and their tools."""
    match event:
        case PermissionRequested(by="operator") | PermissionAnswered(by="operator"):
            return True
        case ToolCall() | ToolProgress() | ToolOutput() | ToolResult():
            return event.for_operator
        case JobFinished() | JobAnnounced():
            return event.for_operator
    return False


def _question_message(call: Call, question: PermissionQuestion) -> OperatorQuestion:
    return OperatorQuestion(
        call=call.call_id,
        user="" if call.request is None else call.request.identity.user,
        id=question.id,
        tool=question.name,
        arguments=dict(question.arguments),
    )
