"""What is said of a wrong argument: one sentence that names verb, argument and value."""

from __future__ import annotations

import math
from collections.abc import Iterable

from .._verbs import VERBS
from ..text_validation import is_blank


def check_string(verb: str, argument: str, value: object) -> None:
    """Make sure that an argument is a string.

    Raises:
        TypeError: It is not.
    """
    if not isinstance(value, str):
        raise TypeError(f"{verb}() {argument}= is a string, not {value!r}")


def check_event(event: object) -> None:
    """Refuse what is no event: a class, None, and what no route could be meant for, such as a text.

    Raises:
        TypeError: It is one of these.
    """
    if isinstance(event, type):
        found = f"a class; write {event.__name__}(...)"
    elif type(event).__module__ == "builtins":
        found = f"{event!r:.80}"
    else:
        return
    raise TypeError(f"publish() event= is an instance of an event class, not {found}")


def check_flag(verb: str, argument: str, value: object) -> None:
    """Make sure that an argument is True or False; ``"no"`` would count as a yes.

    Raises:
        TypeError: It is not.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{verb}() {argument}= is True or False, not {value!r}")


def check_number(verb: str, argument: str, value: object, *, finite: bool = True) -> None:
    """Make sure that an argument is a number that is not negative.

    Args:
        verb: Whose argument it is.
        argument: Its name.
        value: What was given.
        finite: False lets infinity pass.

    Raises:
        TypeError: It is no number.
        ValueError: It is negative, not a number, or too great.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{verb}() {argument}= is a number from 0, not {value!r}")
    if not value >= 0 or (finite and value == math.inf):
        raise ValueError(f"{verb}() {argument}= is a number from 0, not {value!r}")


def check_word(verb: str, argument: str, value: object, words: Iterable[str]) -> None:
    """Make sure that an argument is one of some words.

    Raises:
        ValueError: It is not.
    """
    words = tuple(words)
    if value not in words:
        raise ValueError(f"{verb}() {argument}= is one of {', '.join(words)}, not {value!r}")


def check_verb(user: str, verb: object) -> None:
    """Make sure that something is the name of a verb.

    Args:
        user: Who takes it, such as ``describe``.
        verb: What was given.

    Raises:
        ValueError: It is none.
    """
    check_word(user, "verb", verb, VERBS)


def check_answer(permission: object, allow: object, remember: object) -> None:
    """Make sure that the arguments of ``respond()`` are what they are to be.

    Raises:
        TypeError: One is not.
    """
    check_string("respond", "permission", permission)
    check_flag("respond", "allow", allow)
    check_flag("respond", "remember", remember)


def check_instruction(text: object) -> None:
    """Make sure that the text of ``redirect()`` says something.

    Raises:
        TypeError: It is no string.
        ValueError: It has no words.
    """
    check_string("redirect", "text", text)
    assert isinstance(text, str)
    if is_blank(text):
        raise ValueError(f"redirect() text= is an instruction, not {text!r}; to stop, use cancel()")
