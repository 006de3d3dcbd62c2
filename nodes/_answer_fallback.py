"""What happens when a model fails in the middle of its answer, and another one can go on.

Rules:
1. An answer of which the caller's line has got no sound is taken back, and the next model is asked
   the same question.
2. One that has begun to be heard stands: all whole words that the first model has written are said,
   and the next model is asked to go on behind them.
3. Behind tools, what has begun to be heard can not be gone on with: the next model might call a
   tool once more that has done its work, so the answer fails.
4. No word is said twice: where the next model repeats what stands, that is left out.
"""

from __future__ import annotations

GO_ON = (
    "From the system; the user did not say this.\n"
    "Your answer was broken off behind its last word, and the user hears it up to there. "
    "Go on with the next word, and repeat nothing."
)
"""What a model is told that goes on with an answer."""


class Continuation:
    """The text of a model that goes on with an answer, without the words that it repeats."""

    def __init__(self, stands: str) -> None:
        """Begin.

        Args:
            stands: What was said of the answer; empty if it begins anew.
        """
        self._stands = [_letters(word) for word in stands.split()]
        self._ends_in_space = stands[-1:].isspace()
        self._kept = ""
        self._is_new = not self._stands

    def add(self, text: str) -> str:
        """Return what is new of some more text; nothing while that is not known.

        Args:
            text: Whole words.
        """
        if self._is_new:
            return text
        self._kept += text
        if not self._kept.strip() or self._may_repeat_more():
            return ""
        return self.rest()

    def rest(self) -> str:
        """Return what was kept back: no more text comes."""
        self._is_new = True
        words, kept = self._words(), self._kept
        self._kept = ""
        for count in range(min(len(words), len(self._stands)), 0, -1):
            if words[:count] == self._stands[-count:]:
                return "".join(kept.split(maxsplit=count)[count:])
        return kept.lstrip() if self._ends_in_space else kept

    def _words(self) -> list[str]:
        return [_letters(word) for word in self._kept.split()]

    def _may_repeat_more(self) -> bool:
        """Whether all of it so far stands already, with more behind it."""
        words, stands = self._words(), self._stands
        return any(words == stands[at : at + len(words)] for at in range(len(stands) - len(words)))


def _letters(word: str) -> str:
    """Return a word as it is compared: models differ in capitals and in marks."""
    return "".join(letter for letter in word.lower() if letter.isalnum()) or word
