"""What the messages of the native protocol are made of."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bargein.routes import BargeinError

ErrorCode = Literal[
    "bad_json",
    "bad_message",
    "unknown_type",
    "too_large",
    "bad_audio",
    "rate_limited",
    "agent_error",
    "server_full",
    "draining",
    "unauthorized",
    "forbidden",
    "resume_expired",
    "conversation_refused",
    "conversation_in_use",
]
"""Why something was refused or failed; from ``server_full`` on only before a call: those up to
``forbidden`` with the HTTP status, the others as the one message of a connection."""

MAX_UTTERANCE = 2**32 - 1

Request = Annotated[int | Annotated[str, Field(max_length=64)], Field()]
"""What ties an answer to its question; chosen by who asks."""

Utterance = Annotated[int, Field(ge=0, le=MAX_UTTERANCE)]
Milliseconds = Annotated[float, Field(ge=0, le=86_400_000, allow_inf_nan=False)]
JsonObject = dict[str, Any]


class Wire(BaseModel):
    """A message; fields that it does not know are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class ProtocolViolationError(BargeinError):
    """A message of the other side that cannot be accepted; the connection lives on.

    Attributes:
        code: The code of the ``error`` message that answers it.
        message: What was wrong, without what was said.
        request: The request of the refused message, if it could be read.
    """

    def __init__(self, code: ErrorCode, message: str, request: int | str | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code: ErrorCode = code
        self.message = message
        self.request = request
