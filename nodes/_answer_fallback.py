"""Rules for continuing an answer with another model when the first fails halfway.

Rules:
1. If no audio of the answer has reached the caller's line, the answer is withdrawn and the next
   model is asked the same question.
2. If the caller has begun to hear it, it stands: every whole word of the first model is said, and
   the next model is asked to continue after the last one.
3. An answer that the caller has begun to hear and that has run tools fails: the next model might
   call a tool that has already done its work.
4. No word is said twice: what the next model repeats of the first one's words is left out.
"""

from __future__ import annotations

GO_ON = (
    "From the system; the user did not say this.\n"
    "Your answer was broken off behind its last word, and the user hears it up to there. "
    "Go on with the next word, and repeat nothing."
)
"""The note that asks a model to continue another model's answer."""


class FallbackContinuation:
    """Removes from a continuation the words that it repeats of the answer so far."""

    def __init__(self, stands: str) -> None:
        """Start with the answer so far.

        Args:
            stands: The part of the answer that stands; empty if it starts over.
        """
        self._said = [_letters(word) for word in stands.split()]
        self._ends_in_space = stands[-1:].isspace()
        self._unsaid = ""
        self._is_new = not self._said

    def add(self, text: str) -> str:
        """Return the part of some text that is new; empty while that is undecided."""
        if self._is_new:
            return text
        self._unsaid += text
        if not self._unsaid.strip() or self._may_repeat_more():
            return ""
        return self.rest()

    def rest(self) -> str:
        """Return the buffered text, without repeated words; call it when no more text comes."""
        self._is_new = True
        words, kept = self._words(), self._unsaid
        self._unsaid = ""
        for count in range(min(len(words), len(self._said)), 0, -1):
            if words[:count] == self._said[-count:]:
                return "".join(kept.split(maxsplit=count)[count:])
        return kept.lstrip() if self._ends_in_space else kept

    def _words(self) -> list[str]:
        return [_letters(word) for word in self._unsaid.split()]

    def _may_repeat_more(self) -> bool:
        """Whether the text so far matches a run of words before the end of the answer."""
        words, stands = self._words(), self._said
        return any(words == stands[at : at + len(words)] for at in range(len(stands) - len(words)))


def _letters(word: str) -> str:
    """Return a word in the form in which it is compared, without case and punctuation."""
    return "".join(letter for letter in word.lower() if letter.isalnum()) or word
