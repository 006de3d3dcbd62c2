"""The error of a vendor's service."""

from __future__ import annotations

from typing import Literal

from bargein.routes import BargeinError

Meaning = Literal["passing", "final", "credit", "ignore"]
"""What an error means: trying again may help; it never helps; the account has no credit; the
session goes on."""

_DETAIL_CHARACTERS = 300
_NO_CREDIT = "the account has no credit: check its billing"


class VendorError(BargeinError):
    """A vendor's service refused a request, failed, or cannot be reached.

    Attributes:
        vendor: The vendor's name, as in logs.
        problem: What went wrong, in our words.
        meaning: What the error means, as in the vendor's `ErrorTable`.
        retryable: Whether trying again later may help: whether it is passing.
        status: HTTP status or WebSocket close code; ``None`` if there was neither.
        code: The vendor's own code for the error; may be empty.
        detail: The vendor's message, at most 300 characters; it may quote people.
        retry_after_s: Seconds that the vendor asks to wait; ``None`` if it does not say.
    """

    def __init__(
        self,
        vendor: str,
        problem: str,
        *,
        retryable: bool = True,
        meaning: Meaning | None = None,
        status: int | None = None,
        code: str = "",
        detail: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        """Record the error.

        Args:
            vendor: The vendor's name.
            problem: What went wrong, in our words.
            retryable: Whether trying again later may help, if `meaning` is not given.
            meaning: What the error means; ``None`` for ``"passing"`` or ``"final"`` by `retryable`.
            status: HTTP status or WebSocket close code; ``None`` if there was neither.
            code: The vendor's own code.
            detail: The vendor's message; cut to 300 characters.
            retry_after_s: Seconds that the vendor asks to wait; ``None`` if it does not say.
        """
        super().__init__(problem)
        self.vendor = vendor
        self.problem = problem
        self.meaning: Meaning = meaning or ("passing" if retryable else "final")
        self.retryable = self.meaning == "passing"
        self.status = status
        self.code = code
        self.detail = detail[:_DETAIL_CHARACTERS]
        self.retry_after_s = retry_after_s

    @property
    def safe_text(self) -> str:
        """The message without the vendor's words, which may quote people.

        Logs and clients show it where the texts of exceptions are hidden.
        """
        known = ", ".join(str(part) for part in (self.status, self.code) if part)
        told = f"{self.vendor}: {self.problem}" + (f" ({known})" if known else "")
        return f"{told}; {_NO_CREDIT}" if self.meaning == "credit" else told

    def __str__(self) -> str:
        return f"{self.safe_text}: {self.detail!r}" if self.detail else self.safe_text


class ConnectTimeoutError(VendorError):
    """No connection was made within the limit for connecting."""
