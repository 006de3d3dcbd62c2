"""What can go wrong with a language model.

ChatModelError                  `retryable` tells whether asking again may help
├── ChatModelTimeoutError       it was silent for too long; `phase` tells where
├── AnswerBrokenOffError        it failed in mid-answer; `next_model` may go on with it
└── ChatModelExtraError         (also an ImportError) the package of an extra is missing
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from bargein.routes import BargeinError

if TYPE_CHECKING:
    from ._protocol import ChatModel

_DETAIL_CHARACTERS = 300

Phase = Literal["connect", "first_token", "between_tokens"]
"""What was waited for when a limit ran out."""


class ChatModelError(BargeinError):
    """A language model gave no answer, or the answer broke off.

    A library's exception, if there is one, is its ``__cause__``.
    """

    def __init__(
        self,
        problem: str,
        *,
        model: str = "",
        retryable: bool = False,
        status: int | None = None,
        code: str = "",
        detail: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        """Keep what is known.

        Args:
            problem: What went wrong.
            model: The model's name.
            retryable: Whether the same question may succeed when asked again.
            status: The HTTP status; ``None`` if there was no response.
            code: The server's error code, such as ``"invalid_api_key"``.
            detail: What the server said about it; kept to 300 characters.
            retry_after_s: Seconds the server asks to wait; None when it does not say.
        """
        super().__init__(problem)
        self.problem = problem
        self.model = model
        self.retryable = retryable
        self.status = status
        self.code = code
        self.detail = detail[:_DETAIL_CHARACTERS]
        self.retry_after_s = retry_after_s

    def allow_retry(self, *, retryable: bool, after_s: float | None) -> None:
        """Record whether a retry may help, by the response's status and headers.

        Args:
            retryable: Whether the same question may succeed when asked again.
            after_s: Seconds the server asks to wait; None when it does not say.
        """
        self.retryable, self.retry_after_s = retryable, after_s

    @property
    def safe_text(self) -> str:
        """What went wrong and what to check, without the server's text, which may quote people.

        It is shown where the texts of exceptions are hidden.
        """
        parts = [f"HTTP status {self.status}"] if self.status else []
        known = ", ".join([*parts, *([self.code] if self.code else [])])
        advice = _advice(self.status, self.code)
        problem = f"{self.problem} ({known})" if known else self.problem
        return f"language model {self.model!r}: {problem}{f'; {advice}' if advice else ''}"

    def __str__(self) -> str:
        return f"{self.safe_text}: {self.detail!r}" if self.detail else self.safe_text


_CHECK = {
    400: "check options= and whether this model takes tools",
    401: "it does not accept the key: check api_key= or its environment variable, and that the "
    "key is one of this endpoint",
    402: "the account has no credit: check its billing",
    403: "the key may not do this: check what account and key are allowed",
    404: "there is no such model or address: check the model's name and base_url=",
    413: "the conversation is too long for it: take a model with a longer context, or a shorter "
    "history",
    422: "check options= and whether this model takes tools",
    429: "it has had too many questions or tokens: check the rate limits of the account, or ask "
    "less at once",
}
_CHECK_SERVER = "the endpoint itself fails: check its status page or its log, and try again later"


def _advice(status: int | None, code: str) -> str:
    """Return what to check when an endpoint refuses; empty where nothing is known."""
    if code == "insufficient_quota":  # comes with status 429, and waiting helps nobody
        return _CHECK[402]
    if status is not None and status >= 500:
        return _CHECK_SERVER
    return "" if status is None else _CHECK.get(status, "")


class ChatModelTimeoutError(ChatModelError):
    """A language model was silent for longer than its limit."""

    def __init__(self, phase: Phase, limit_s: float, *, model: str = "") -> None:
        """Keep where and how long.

        Args:
            phase: What it was waiting for.
            limit_s: The limit, in seconds.
            model: The model's name.
        """
        problem = f"nothing within {limit_s:g} s ({phase}_timeout_s sets the limit)"
        super().__init__(problem, model=model, retryable=True)
        self.phase = phase
        self.limit_s = limit_s


class AnswerBrokenOffError(ChatModelError):
    """A language model failed in mid-answer, and another one can go on; ``Fallback`` raises it.

    What was yielded before stays valid, and ends with a whole word.  A ``ChatNode`` catches this
    and asks the next model; without it, ask `next_model` yourself, or let the answer fail.  What
    the first model raised is its ``__cause__``.
    """

    def __init__(self, next_model: ChatModel, *, model: str = "") -> None:
        """Keep who may go on.

        Args:
            next_model: The models that were not asked yet, as one.
            model: The name of the one that failed.
        """
        super().__init__("the answer broke off", model=model, retryable=True)
        self.next_model = next_model


class ChatModelExtraError(ChatModelError, ImportError):
    """A package is missing that an extra of this distribution installs."""

    def __init__(self, owner: str, package: str, extra: str) -> None:
        """Keep what needs what."""
        problem = f'{owner} needs the package {package!r}. Run: pip install "bargein[{extra}]"'
        super().__init__(problem)
        self.extra = extra

    @property
    def safe_text(self) -> str:
        """The whole text, which quotes nobody."""
        return self.problem


def need(owner: str, package: str, extra: str) -> ModuleType:
    """Import a package that belongs to an extra.

    Args:
        owner: What needs it, for the error message.
        package: The module to import.
        extra: The extra that installs it.

    Raises:
        ChatModelExtraError: It is not installed.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise ChatModelExtraError(owner, package, extra) from error
