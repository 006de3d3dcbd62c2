"""The messages by which operators are asked about tools, and answer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ...protocol._message_base import JsonObject, NativeMessage

MAX_ID = 256
"""The longest id of a question that an answer may name."""


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
