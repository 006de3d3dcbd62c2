"""What a port gives to a session: a call, and an account of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from ..websocket._connection import POLICY_VIOLATION, TRY_AGAIN_LATER
from ._limits import Limits
from ._metrics import Metrics

if TYPE_CHECKING:
    from .. import App, Call
    from .._call_request import CallRequest
    from .._transport_protocol import Transport

RefusalCode = Literal[
    "bad_message",
    "rate_limited",
    "agent_error",
    "server_full",
    "draining",
    "unauthorized",
    "forbidden",
    "conversation_refused",
    "conversation_in_use",
    "resume_expired",
]
"""Why a request or a call is refused, in one word."""

_LATER = ("server_full", "draining", "rate_limited")


@dataclass(frozen=True, slots=True)
class CallEnd:
    """How a call ended."""

    reason: str
    """Why, in one word, for the caller: ``hangup``, ``shutdown``, or a word of the agent's."""
    code: RefusalCode | None = None
    """``agent_error`` if the agent failed, another code if no call was opened; else ``None``."""
    text: str = ""
    """What the caller may know about ``code``."""

    @property
    def was_refused(self) -> bool:
        """Whether no call was opened."""
        return self.code not in (None, "agent_error")

    @property
    def close_code(self) -> int:
        """The code of the close frame for a call that was refused (RFC 6455, section 7.4)."""
        return TRY_AGAIN_LATER if self.code in _LATER else POLICY_VIOLATION


class HostedCall(Protocol):
    """A call that a port has admitted: the session opens it, the port counts it and may end it."""

    @property
    def app(self) -> App:
        """The app that answers it."""
        ...

    @property
    def call_id(self) -> str:
        """The id of the call in logs."""
        ...

    @property
    def request(self) -> CallRequest:
        """How it was asked for, and by whom."""
        ...

    @property
    def limits(self) -> Limits:
        """What its caller may do."""
        ...

    @property
    def metrics(self) -> Metrics:
        """The server's counts: a wire adds the frames, cleared speech and errors of its own."""
        ...

    @property
    def call(self) -> Call | None:
        """The call; ``None`` before it is open, and if it is refused."""
        ...

    def end(self, reason: str) -> None:
        """End the call now, or as soon as it is open; the first reason counts."""

    def forget(self) -> None:
        """Say that no client will come back for the end of this call."""

    async def run(
        self,
        transport: Transport,
        *,
        opened: Callable[[Call], None] = lambda call: None,
        ended: Callable[[Call], None] = lambda call: None,
    ) -> CallEnd:
        """Open the call, wait for its end, and close it.

        What the app's code raises is logged, and told in the result.

        Args:
            transport: The caller's side.
            opened: Called with the call once it is open; must not raise.
            ended: Called when it has ended, while its tasks may still run; must not raise.
        """
        ...
