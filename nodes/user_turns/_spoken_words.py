"""Takes out of a recogniser's text what nobody said: notes about sounds, and marks without a word.

Recognisers write "(music)", "[BLANK_AUDIO]", "*coughs*" or "." for a breath, a click or a radio.
"""

from __future__ import annotations

import re

from bargein.bridge.events import VoiceWords
from bargein.bridge.validation.texts import has_words

_NOTES = re.compile(
    r"\[[^\[\]]*\]|\{[^{}]*\}|<[^<>]*>|\*+[^*\d]+\*+|[\u3010\u3014][^\u3011\u3015]*[\u3011\u3015]"
    r"|[\u266a-\u266c\U0001f3b5\U0001f3b6][^\u266a-\u266c\U0001f3b5\U0001f3b6]*"
    r"(?:[\u266a-\u266c\U0001f3b5\U0001f3b6]+|$)"
    r"|[(\uff08][^()\uff08\uff09\d]*[)\uff09]"
)
"""Brackets, asterisks and what stands between notes of music.  Round brackets with a digit are part
of a telephone number: "(555) 123-4567"."""


def without_notes(words: VoiceWords) -> VoiceWords:
    """Return a transcript with only what somebody said; empty if that is no letter and no digit.

    The times of its words are dropped with a note, as it is unknown which of them are the note's.
    """
    spoken = _spoken(words.content)
    if spoken == words.content.strip():
        return words
    return words.model_copy(update={"content": spoken, "words": ()})


def _spoken(text: str) -> str:
    spoken = text
    if not text.isascii() or any(mark in text for mark in "([{<*"):
        spoken = re.sub(r"\s+", " ", _NOTES.sub(" ", text))
        spoken = re.sub(r"^[\s.,;:!?\u2026-]+|\s+(?=[.,;:!?])", "", spoken)
    return spoken.strip() if has_words(spoken) else ""
