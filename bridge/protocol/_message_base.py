"""The base of all messages of the native protocol, and its error codes."""

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
"""Why something was refused or failed.

Codes from ``server_full`` on refuse a call before it begins: those up to ``forbidden`` come with
the HTTP status, the later ones as the only message of a connection."""

MAX_UTTERANCE = 2**32 - 1

Request = Annotated[int | Annotated[str, Field(max_length=64)], Field()]
"""Ties an answer to its question; the side that asks chooses it."""

UtteranceNumber = Annotated[int, Field(ge=0, le=MAX_UTTERANCE)]
Milliseconds = Annotated[float, Field(ge=0, le=86_400_000, allow_inf_nan=False)]
JsonObject = dict[str, Any]


class NativeMessage(BaseModel):
    """The base of a message; it ignores unknown fields."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class ProtocolViolationError(BargeinError):
    """The other side sent a message that cannot be accepted; the connection stays open.

    Attributes:
        code: The code of the ``error`` message that answers it.
        message: What is wrong, without anything that people said.
        request: The request of the refused message; ``None`` if it had none or was unreadable.
    """

    def __init__(self, code: ErrorCode, message: str, request: int | str | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code: ErrorCode = code
        self.message = message
        self.request = request
