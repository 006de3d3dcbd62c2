"""Batches generated and heard words into few messages, without a delay that a reader notices.

Rule 1. The first words after a pause are sent at once; those that follow within ``WORDS_EVERY_S``
wait, and share a message.
Rule 2. Words are sent as generated before they are sent as heard.
Rule 3. Every other message is sent after the words that came before it: at a cut, an end or a
change of state, the client has every word.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, final

import trio

from ...protocol import Spoken, Transcript

WORDS_EVERY_S = 0.1
"""The minimum of seconds between two messages with words of one kind.  People hear three words a
second; a model writes thirty to a hundred pieces, which a text-only call sends twice."""

CallAt = Callable[[object, float, Callable[[], None]], None]
"""Calls a function at a time: ``Router.call_at``."""


@dataclass(slots=True)
class _UnsentWords:
    """Unsent words of one kind and one utterance."""

    text: str = ""
    utterance: int | None = None


@final
class BatchedWords:
    """The agent's words on their way to the client."""

    __slots__ = ("_call_at", "_enqueue", "_generated", "_heard", "_sent_at_s")

    def __init__(self, enqueue: Callable[[Transcript | Spoken], None]) -> None:
        """Start without words.

        Args:
            enqueue: Queues a message for the client.
        """
        self._enqueue = enqueue
        self._call_at: CallAt | None = None
        self._generated = _UnsentWords()
        self._heard = _UnsentWords()
        self._sent_at_s = -math.inf

    def attached(self, call_at: CallAt) -> None:
        """Keep the timer of the call; before that, words are sent at once."""
        self._call_at = call_at

    def add(self, kind: Literal["generated", "heard"], utterance: int | None, text: str) -> None:
        """Send words of the agent, now or together with those that follow.

        Args:
            kind: What happened to them.
            utterance: Its number; ``None`` if the words belong to no utterance.
            text: The words.
        """
        words = self._generated if kind == "generated" else self._heard
        if words.text and words.utterance != utterance:
            self.flush()
        nothing_waited = not (self._generated.text or self._heard.text)
        words.utterance = utterance
        words.text += text
        due_s = self._sent_at_s + WORDS_EVERY_S
        if self._call_at is None or trio.current_time() >= due_s:
            self.flush()
        elif nothing_waited:
            self._call_at(self, due_s, self.flush)

    def flush(self) -> None:
        """Send all waiting words."""
        generated, heard = self._generated, self._heard
        if not (generated.text or heard.text):
            return
        self._sent_at_s = trio.current_time()
        if text := generated.text:
            generated.text = ""
            utterance = generated.utterance
            self._enqueue(Transcript(role="agent", text=text, final=True, utterance=utterance))
        if text := heard.text:
            heard.text = ""
            assert heard.utterance is not None  # only an utterance is heard
            self._enqueue(Spoken(utterance=heard.utterance, text=text))
