"""What the agent says when the recogniser found no words in the caller's turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bargein.routes import Message

from ..events import CallState, TranscriptionFailed

if TYPE_CHECKING:
    from .._call import Call

NOT_UNDERSTOOD = "Sorry, I did not catch that."

_WAITING: tuple[CallState, ...] = ("idle", "waiting_permission", "waiting_input")
"""The states in which it is the caller's turn, and the caller believes to have said something.  In
the others the agent says or does something, or the caller speaks again."""


def say_not_understood(call: Call, text: str) -> None:
    """Say a text in a call whenever the caller waits for an answer to unrecognised words.

    A sound without words that interrupted nothing, such as a cough, gets no answer.
    """

    def failed(message: Message) -> None:
        event: TranscriptionFailed = message.event
        was_speech = event.reason != "no_words" or event.interrupted
        if was_speech and call.current_state in _WAITING:
            call.say(text)

    call.router.add_sink(failed, TranscriptionFailed)
