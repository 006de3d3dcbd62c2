"""The watch socket: operators see their questions of all calls, and answer them.

Rule 1. It shows only questions with ``by="operator"``, and only to callers with that right.
Rule 2. What one caller's tool asks hides no question of another call: a question that cannot be
        shown is denied.
Rule 3. An operator that reads too slowly loses its connection; no call waits for it.
Rule 4. A connection ends with the token that opened it; what comes later is not read.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Literal, final

import trio
from pydantic import Discriminator, Field, TypeAdapter, ValidationError
from pydantic_core import to_json

from bargein.routes import Message
from bargein.routes.logs import get_logger

from ..control._tool_permissions import PermissionQuestion, PermissionVerdict
from ..events import PermissionAnswered, PermissionRequested
from ..protocol._event_json import brief
from ..protocol._message_base import JsonObject, NativeMessage
from ..protocol._outbox import Outbox
from ..validation.foreign_data import clean_text, showable
from ..websocket import Data
from ..websocket._connection import POLICY_VIOLATION, TRY_AGAIN_LATER

if TYPE_CHECKING:
    from ..call._call import Call
    from ._wire import WireConnection

log = get_logger()

WATCH_PATH = "/watch"
"""The path of the watch socket, on every server."""

MAX_OPERATORS = 16
"""Operators at the same time."""

OPERATORS_PER_USER = 2
"""Of these, those of one user: one on each of two screens, or a new one beside one that is lost."""

MAX_WAITING_BYTES = 1_000_000

MAX_ID = 256
"""The longest id of a question that an answer may name."""

PART_LENGTH = 32_000
"""How many characters of a question's whole arguments one message holds."""


class OperatorQuestion(NativeMessage):
    """A tool waits for an operator's permission."""

    type: Literal["question"] = "question"
    call: str
    user: str
    """The user of the call's identity; empty for nobody in particular."""
    id: str
    tool: str
    arguments: JsonObject
    """The arguments, with long texts and lists shortened; at most 4 kB."""
    size: int
    """How many bytes the whole arguments have as JSON; ``OperatorAsks`` gets them."""


class OperatorQuestionClosed(NativeMessage):
    """A question was answered or withdrawn."""

    type: Literal["closed"] = "closed"
    call: str
    id: str
    verdict: Literal["allowed", "denied", "withdrawn"]


class OperatorAnswer(NativeMessage):
    """Answers a question."""

    type: Literal["permission"]
    call: Annotated[str, Field(max_length=64)]
    id: Annotated[str, Field(max_length=MAX_ID)]
    allow: bool


class OperatorAsks(NativeMessage):
    """Asks for the whole arguments of a question."""

    type: Literal["arguments"]
    call: Annotated[str, Field(max_length=64)]
    id: Annotated[str, Field(max_length=MAX_ID)]
    at: Annotated[int, Field(ge=0)] = 0
    """The first character that is wanted."""


class OperatorArguments(NativeMessage):
    """A part of the whole arguments of a question."""

    type: Literal["arguments"] = "arguments"
    call: str
    id: str
    at: int
    """The first character of the part."""
    text: str
    """The part: JSON, of at most 32,000 characters."""
    length: int
    """How many characters the whole has."""


class OperatorRefused(NativeMessage):
    """The only message of a connection that is one too many."""

    type: Literal["error"] = "error"
    code: Literal["server_full"] = "server_full"
    message: str


class OperatorError(NativeMessage):
    """An answer that was not accepted."""

    type: Literal["error"] = "error"
    message: str


@final
class _Operator:
    """One connection of an operator, and the questions that it has still to see.

    A question is written when the operator has read what came before, so that no number of them
    and no size fills the outbox.
    """

    def __init__(self, connection: WireConnection, user: str) -> None:
        self.user = user
        self.outbox = Outbox(
            max_bytes=MAX_WAITING_BYTES,
            on_broken=lambda: connection.end_with(TRY_AGAIN_LATER, "too slow"),
        )
        self.outbox.spare = self._next
        self._unseen: dict[tuple[str, str], Call] = {}
        self._connection = connection
        self.ending = trio.CancelScope()

    def ask(self, call: Call, id: str) -> None:
        """Show a question as soon as the operator has read those before it."""
        self._unseen[call.call_id, id] = call
        self.outbox.wake()

    def close(self, call: Call, id: str, verdict: PermissionVerdict) -> None:
        """Say how a question was closed, unless the operator has not seen it."""
        if self._unseen.pop((call.call_id, id), None) is None:
            closed = OperatorQuestionClosed(call=call.call_id, id=id, verdict=verdict)
            self.outbox.enqueue(closed.model_dump_json())

    def _next(self) -> str | None:
        while self._unseen:
            key = next(iter(self._unseen))
            call = self._unseen.pop(key)
            question = call.permissions.question(key[1])
            if question is not None and (text := _shown_to_operators(call, question)):
                return text
        return None

    async def end_later(self, lasts_s: float) -> None:
        """End the connection once its time is over, or ``ending`` is cancelled.

        Args:
            lasts_s: The time, in seconds; infinite for no end.
        """
        reason = "you were sent away"
        with self.ending:
            await trio.sleep(lasts_s)
            reason = "the token has expired"
        self._connection.end_with(POLICY_VIOLATION, reason)
        self.outbox.close()
        await trio.sleep(self._connection.close_s)
        self._connection.cut()


@final
class Operators:
    """The operators of a server, and the calls whose questions they answer."""

    def __init__(self, rejected: Counter[str]) -> None:
        """Start without operators.

        Args:
            rejected: Counts those that are one too many, by code.
        """
        self._rejected = rejected
        self._calls: dict[str, Call] = {}
        self._operators: set[_Operator] = set()

    def _why_not(self, user: str) -> str:
        """Return why a user is not admitted now; empty if it is."""
        if len(self._operators) >= MAX_OPERATORS:
            return "too many operators"
        if sum(one.user == user for one in self._operators) >= OPERATORS_PER_USER:
            return f"a user watches over {OPERATORS_PER_USER} connections at most"
        return ""

    def attend(self, call: Call) -> None:
        self._calls[call.call_id] = call

        def asked(message: Message) -> None:
            if message.event.by == "operator":
                for operator in tuple(self._operators):
                    operator.ask(call, message.event.id)

        def closed(message: Message) -> None:
            event = message.event
            if event.by == "operator":
                for operator in tuple(self._operators):
                    operator.close(call, event.id, event.verdict)

        call.router.observe(PermissionRequested, asked)
        call.router.observe(PermissionAnswered, closed)

    def leave(self, call_id: str) -> None:
        self._calls.pop(call_id, None)

    def end(self, user: str) -> None:
        for operator in self._operators:
            if operator.user == user:
                operator.ending.cancel(reason="the user is sent away")

    async def serve(self, connection: WireConnection, user: str, lasts_s: float = math.inf) -> None:
        """Serve one operator's connection until it is over.  Cancelling this is safe.

        Args:
            lasts_s: After how many seconds it ends; infinite for never.
        """
        operator = _Operator(connection, user)
        outbox = operator.outbox
        if why_not := self._why_not(user):
            self._rejected["server_full"] += 1
            connection.end_with(TRY_AGAIN_LATER, "server_full")
            outbox.enqueue(OperatorRefused(message=why_not).model_dump_json())
            outbox.close()
            with trio.move_on_after(connection.close_s):
                await connection.run(outbox, lambda data: None)
            return
        for call in self._calls.values():
            for question in call.permissions.pending:
                if question.by == "operator":
                    operator.ask(call, question.id)

        def receive(data: Data) -> None:
            if not outbox.is_closed and (reply := self._handle(data)):
                outbox.enqueue(reply.model_dump_json())

        self._operators.add(operator)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(operator.end_later, lasts_s)
                await connection.run(outbox, receive)
                nursery.cancel_scope.cancel(reason="the connection is over")
        finally:
            self._operators.remove(operator)

    def _handle(self, data: Data) -> NativeMessage | None:
        """Apply an operator's message, and return the reply; ``None`` for none."""
        try:
            said = _FROM_OPERATOR.validate_json(data)
        except ValidationError:
            text = "an answer is {type: permission, call, id, allow}"
            return OperatorError(message=f"{text}, and a request {{type: arguments, call, id, at}}")
        call = self._calls.get(said.call)
        question = None if call is None else call.permissions.question(said.id)
        if call is None or question is None or question.by != "operator":
            return OperatorError(message=f"the question {said.id!r} is no longer open")
        if isinstance(said, OperatorAnswer):
            call.permissions.respond(said.id, said.allow)
            return None
        whole = to_json(showable(question.arguments)).decode()
        text = whole[said.at : said.at + PART_LENGTH]
        return OperatorArguments(
            call=said.call, id=said.id, at=said.at, text=text, length=len(whole)
        )


_FROM_OPERATOR: TypeAdapter[OperatorAnswer | OperatorAsks] = TypeAdapter(
    Annotated[OperatorAnswer | OperatorAsks, Discriminator("type")]
)


def _shown_to_operators(call: Call, question: PermissionQuestion) -> str:
    """Return a question as a message; deny one that cannot be shown, and return nothing."""
    try:
        if len(question.id) > MAX_ID:
            raise ValueError(f"its id has over {MAX_ID} characters, so that no answer can name it")
        return _question_message(call, question).model_dump_json()
    except Exception:  # whatever is wrong with one question, the others are shown
        log.exception("operator_question_not_shown", call_id=call.call_id, tool=question.name)
        call.permissions.respond(question.id, allow=False)
        return ""


def _question_message(call: Call, question: PermissionQuestion) -> OperatorQuestion:
    shown, size = brief(question.arguments)
    return OperatorQuestion(
        call=call.call_id,
        user="" if call.request is None else clean_text(call.request.identity.user),
        id=question.id,
        tool=question.name,
        arguments=shown,
        size=size,
    )
