"""What a transport on a telephone line can do besides carrying a call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, runtime_checkable

from bargein.routes import BargeinError

from .events import Button, CallActionCause, TransferStep


class CallActionError(BargeinError):
    """A transport could not do what an agent asked for.

    Attributes:
        reason: Why, in words for the agent's model and the caller's side, such as "the number is
            busy".
        cause: The kind of reason.
        advice: What the developer can do about it, for the log; may be empty.
    """

    def __init__(
        self, reason: str = "", *, cause: CallActionCause = "failed", advice: str = ""
    ) -> None:
        """Say why it could not be done.

        Args:
            reason: In words for the agent's model.
            cause: The kind of reason.
            advice: What the developer can do about it; neither the model nor the caller gets it.
        """
        super().__init__(f"{reason}: {advice}" if advice else reason)
        self.reason = reason
        self.cause: CallActionCause = cause
        self.advice = advice


@runtime_checkable
class CanTransfer(Protocol):
    """A transport that can transfer the caller; it says so by having this method."""

    async def transfer(self, target_phone_number: str) -> None:
        """Transfer the caller; return once that is done.

        The call does not end by itself: a transport that no longer has the caller ends it with
        ``call.end("transferred")``.  The call cancels this after 30 s, and when the code that asked
        for the transfer is cancelled.

        Args:
            target_phone_number: The number, as the agent gave it; not checked.

        Raises:
            CallActionError: It cannot be done; any other error is told by its class alone.
        """


Consult = Callable[[Any], Awaitable[bool]]
"""Talks to a colleague in a call of its own, and returns whether they take the waiting caller."""


@runtime_checkable
class CanConsult(Protocol):
    """A transport that can ask a colleague before a transfer; it says so by having this method."""

    async def consult(
        self,
        target_phone_number: str,
        consult: Consult | str,
        progressed: Callable[[TransferStep], None],
    ) -> None:
        """Call a colleague while the caller waits, and connect both if the colleague agrees.

        As for ``CanTransfer``, the call ends by ``call.end("transferred")``.  If it is cancelled,
        or the colleague does not take the call, the caller is with the agent as before, and the
        colleague's call is ended.

        Args:
            target_phone_number: The colleague's number, as the agent gave it; not checked.
            consult: Answers the colleague's call, and returns whether they take the caller; or what
                they are told before they say so.
            progressed: Called with each step.

        Raises:
            CallActionError: The two are not connected; ``cause`` says why.
        """


@runtime_checkable
class CanSendDTMF(Protocol):
    """A transport that can press keys for the other end; it says so by having this method."""

    async def send_dtmf(self, button: Button) -> None:
        """Press a key; return once that is done.

        The call presses the next key when this one is done.  It cancels this after 5 s, and when
        the code that asked for the key is cancelled.

        Args:
            button: The key.

        Raises:
            CallActionError: It cannot be done; any other error is told by its class alone.
        """
