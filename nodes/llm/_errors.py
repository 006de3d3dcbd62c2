"""What can go wrong with a language model.

ChatModelError                  `retryable` tells whether asking again may help
├── ChatModelTimeoutError       it was silent for too long; `phase` tells where
└── ChatModelExtraError         (also an ImportError) the package of an extra is missing
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Literal

_DETAIL_CHARACTERS = 300

Phase = Literal["connect", "first_token", "between_tokens"]
"""What was waited for when a limit ran out."""


class ChatModelError(Exception):
    """A language model gave no answer, or the answer broke off.

    The exception of a library, where there is one, is the `__cause__`.
    """

    def __init__(
        self,
        problem: str,
        *,
        model: str = "",
        retryable: bool = False,
        status: int | None = None,
        detail: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        """Keep what is known.

        Args:
            problem: What went wrong, in our words.
            model: The model's name.
            retryable: Whether the same question may succeed when asked again.
            status: HTTP status; None when the trouble was not an answer.
            detail: What the server said about it; kept to 300 characters.
            retry_after_s: Seconds the server asks to wait; None when it does not say.
        """
        super().__init__(problem)
        self.problem = problem
        self.model = model
        self.retryable = retryable
        self.status = status
        self.detail = detail[:_DETAIL_CHARACTERS]
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        told = f": {self.detail!r}" if self.detail else ""
        return f"language model {self.model!r}: {self.problem}{told}"


class ChatModelTimeoutError(ChatModelError):
    """A language model was silent for longer than the limit that its caller set."""

    def __init__(self, phase: Phase, limit_s: float, *, model: str = "") -> None:
        """Keep where and how long.

        Args:
            phase: What was waited for.
            limit_s: The limit, in seconds.
            model: The model's name.
        """
        problem = f"nothing within {limit_s:g} s ({phase}_timeout_s sets the limit)"
        super().__init__(problem, model=model, retryable=True)
        self.phase = phase
        self.limit_s = limit_s


class ChatModelExtraError(ChatModelError, ImportError):
    """A package is missing that an extra of this distribution brings."""

    def __init__(self, owner: str, package: str, extra: str) -> None:
        """Keep what needs what."""
        problem = f'{owner} needs the package {package!r}. Run: pip install "bargein[{extra}]"'
        super().__init__(problem)
        self.extra = extra

    def __str__(self) -> str:
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
