"""The rules of a chain: what cuts, pauses, resumes or suspends its runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ._errors import RouteDefinitionError
from ._event_match import Matcher, Predicate
from ._message import Message
from ._signatures import fit, is_generator_function, name_of, needs_function, needs_plain_function
from ._user_errors import as_error

Overlap = Literal["queue", "restart", "drop", "concurrent"]
"""What a trigger does while a run is active."""


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Cuts the runs of a chain; with ``suspends``, also keeps it from triggering."""

    matcher: Matcher
    handler: Callable[[Message | None, Any], Any] | None
    condition: Predicate | None
    written: str
    suspends: bool = False

    def matches(self, message: Message) -> bool:
        """Return whether it matches a message; not if one of its filters raises."""
        checks = self.matcher.for_class(type(message.event))
        try:
            return checks is not None and all(check(message) for check in checks)
        except BaseException as error:  # noqa: ASYNC103, BLE001 - reported when the rule acts
            as_error(error)
            return False  # noqa: ASYNC104 - see as_error()

    def __str__(self) -> str:
        return self.written


@dataclass(frozen=True, slots=True)
class PauseRule:
    """Pauses the runs of a chain in place, or resumes them."""

    matcher: Matcher
    opens: bool
    written: str

    def __str__(self) -> str:
        return self.written


Rule = Interrupt | PauseRule


def an_interrupt(
    word: str,
    matched: Matcher,
    options: list[str],
    handler: object,
    condition: object,
    *,
    suspends: bool,
) -> Interrupt:
    """Check the handler and condition of ``.interrupt_on()`` or ``.suspend_on()``."""
    where = f".{word}()"
    written = [str(matched)]
    if handler is not None:
        _needs_no_class(handler, where, "handler=")
        needs_function(handler, f"{where} handler=")
        if is_generator_function(handler):
            raise RouteDefinitionError(
                f"{where} handler= must be a function, sync or async; "
                f"{name_of(handler)} is a generator, which would never be started"
            )
        takes = "nothing, the message, or the message and the Interruption"
        written.append(f"handler={name_of(handler)}")
        handler = fit(handler, 2, f"{where} handler=", takes)  # type: ignore[arg-type]  # checked
    if condition is not None:
        _needs_no_class(condition, where, "condition=")
        needs_plain_function(condition, f"{where} condition=")
        written.append(f"condition={name_of(condition)}")
        condition = fit(condition, 1, f"{where} condition=", "the message, or nothing")  # type: ignore[arg-type]  # checked
    text = f"{word}({', '.join([*written, *options])})"
    return Interrupt(matched, handler, condition, text, suspends)


def _needs_no_class(fn: object, where: str, option: str) -> None:
    """Raise for a class: calling it would make an object that nobody sees."""
    if isinstance(fn, type):
        raise RouteDefinitionError(
            f"{where} {option} needs a function, not the class {fn.__name__}; name several events "
            f"as a tuple: {where[:-2]}((..., {fn.__name__}))"
        )
