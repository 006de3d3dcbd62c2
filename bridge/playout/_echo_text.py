"""The agent's words that a microphone may pick up now as an echo."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ._utterance import Utterance

BEFORE_CHARS = 60
"""How many of the characters already heard still count, rounded to whole words: 4 s of speech.  An
echo comes back within half a second, and a recogniser takes a second or two to write it."""

AFTER_CHARS = 80
"""How many characters beyond what the player has may count: a clause is seldom longer."""


_CLAUSE_END = r"[.,;:!?\u3002\uff0c\uff01\uff1f\u3001\u2026]+(?=\s|$)|[\u3002\uff0c\uff01\uff1f]|\n"


def words_around(before: str, utterances: Iterable[Utterance]) -> str:
    """Return the text from a little before what is heard now to the end of the clause after it.

    Args:
        before: What was heard before these utterances.
        utterances: Those that are not over, in order; all that the player has of them counts.
    """
    text, heard = before, len(before)
    for utterance in utterances:
        if not utterance.played.sent_ms:
            break  # no sound of it can be heard yet
        text += " " if text and not text[-1].isspace() else ""
        if utterance.played.started:
            heard = len(text) + utterance.heard_chars
        text += utterance.generated[: _clause_end(utterance.generated, utterance.chars_given())]
    return text[_word_start(text, heard - BEFORE_CHARS) :]


def _word_start(text: str, at: int) -> int:
    """Return where the word that contains an offset starts."""
    return text.rfind(" ", 0, at + 1) + 1 if at > 0 else 0


def _clause_end(text: str, at: int) -> int:
    last = at + AFTER_CHARS
    found = re.compile(_CLAUSE_END).search(text, at, last)
    if found is not None:
        return found.end()
    return len(text) if len(text) <= last else max(at, text.rfind(" ", at, last))
