"""The watch socket: operators see their questions of all calls, and answer them.

Rule 1. It shows only questions with ``by="operator"``, and only to callers with that right.
Rule 2. An operator that reads too slowly loses its connection; no call waits for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, final

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
from ._message_base import JsonObject, Wire
from ._outbox import Outbox

if TYPE_CHECKING:
    from .. import Call

MAX_OPERATORS = 16
"""Operators at the same time."""

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
class Operators:
    """The operators of a server, and the calls whose questions they answer."""

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}
        self._outboxes: set[Outbox] = set()

    @property
    def is_full(self) -> bool:
        """Whether no further operator is admitted."""
        return len(self._outboxes) >= MAX_OPERATORS

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

    async def serve(self, connection: Connection) -> None:
        """Serve one operator's connection until it is over.  Cancelling this is safe."""
        outbox = Outbox(
            max_bytes=MAX_WAITING_BYTES, on_broken=lambda: connection.end_with(TOO_SLOW, "too slow")
        )
        for call in self._calls.values():
            for question in call.permissions.pending:
                if question.by == "operator":
                    outbox.enqueue(_question_message(call, question).model_dump_json())

        def receive(data: Data) -> None:
            problem = self._handle(data)
            if problem:
                outbox.enqueue(OperatorError(message=problem).model_dump_json())

        self._outboxes.add(outbox)
        try:
            await connection.run(outbox, receive)
        finally:
            self._outboxes.remove(outbox)

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
        for outbox in tuple(self._outboxes):
            outbox.enqueue(text)


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
