"""What the agent says when the recogniser found no words in the caller's turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bargein.routes import Message

from ..events import CallState, TranscriptionFailed, UserTranscriptionReceived
from ..languages import language, with_some

if TYPE_CHECKING:
    from bargein.routes import Router

NOT_UNDERSTOOD = language("en").not_understood

_WAITING: tuple[CallState, ...] = ("idle", "waiting_permission", "waiting_input")
"""The states in which it is the caller's turn, and the caller believes to have said something.  In
the others the agent says or does something, or the caller speaks again."""


def usual_texts(tag: str) -> tuple[str, ...]:
    """Return the texts of the language of an app.

    Raises:
        ValueError: There are none.
    """
    known = ("en",) if tag == "en" else with_some("not_understood")
    if tag not in known:
        raise ValueError(f"App(language=) knows {', '.join(known)}, not {tag!r}")
    return language(tag).not_understood


def say_not_understood(
    router: Router,
    texts: Sequence[str],
    *,
    state: Callable[[], CallState],
    say: Callable[[str], object],
) -> None:
    """Say a text in a call whenever the caller waits for an answer to unrecognised words.

    A sound without words that interrupted nothing, such as a cough, gets no answer.

    Args:
        router: The call's.
        texts: One for each time in a row; after the last one the agent says nothing until it
            understands a word.
        state: Returns what the call is doing now.
        say: Says a text.
    """
    in_a_row = 0

    def failed(message: Message) -> None:
        nonlocal in_a_row
        event: TranscriptionFailed = message.event
        was_speech = event.reason != "no_words" or event.interrupted
        if not was_speech or state() not in _WAITING:
            return
        if in_a_row < len(texts):
            say(texts[in_a_row])
        in_a_row += 1

    def understood(_: Message) -> None:
        nonlocal in_a_row
        in_a_row = 0

    router.add_sink(failed, TranscriptionFailed)
    router.add_sink(understood, UserTranscriptionReceived)
