"""The words of an ear that turn taking has used, so that none of them becomes a turn again.

Rules:
1. The stream of an ear is told when turn taking has used words of its turn (`turn_taken`), and
   lets go of their audio: no other line hears it.  Audio of which the ear reported nothing, and
   what was said since, are kept and heard.
2. Words behind those that were used are a turn of their own, if the ear's turn goes on.
3. A stream that cannot let go hears the turn again on its next line.  Words that it repeats from
   the beginning of the turn are left out, also if it now writes some of them differently.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from ._streaming_protocols import EarStream, WordsHeard

ALIKE = 0.7
"""How alike two texts are, 0 to 1, if they are the same words heard twice: of "hello there" and
"hello their" 0.82 of the letters are."""


def release_turn(stream: EarStream | None, ago_s: float) -> bool:
    """Tell a stream that the turn of its caller was used.

    Args:
        stream: The stream; ``None`` if none is open.
        ago_s: How long ago what was used ended, in seconds.

    Returns:
        Whether the stream lets go of that audio; false if a later line may hear it again.
    """
    turn_taken = getattr(stream, "turn_taken", None)
    return False if turn_taken is None else bool(turn_taken(ago_s))


class UsedWords:
    """The words of an ear's current turn that turn taking has used."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}  # of each segment
        self._text: list[str] = []  # what another line may repeat
        self._repeats: list[str] = []  # what this line may repeat

    def __bool__(self) -> bool:
        """Whether words of this turn were used."""
        return bool(self._counts)

    @property
    def may_repeat(self) -> bool:
        """Whether the ear hears words again that were used."""
        return bool(self._repeats)

    def add(self, words: Mapping[int, WordsHeard], *, let_go: bool) -> None:
        """Record that all words so far were used.

        Args:
            words: The words of the turn, by segment.
            let_go: Whether no other line hears them again.
        """
        self._counts = {n: len(heard.text.split()) for n, heard in words.items()}
        self._text = [] if let_go else _joined(words)
        self._repeats = []

    def forget(self) -> None:
        """Begin another turn."""
        self._counts.clear()
        self._text = []

    def restart(self) -> None:
        """Expect the words that were not let go once more, as another line hears them again."""
        self._repeats = self._repeats or self._text
        self.forget()

    def merge(self) -> None:
        """Expect all words of the turn as its first segment."""
        if self._counts:
            self._counts = {0: sum(self._counts.values())}

    def turn_over(self) -> None:
        """Expect no repetition any more."""
        self._repeats = []
        self.forget()

    def count_in(self, words: Mapping[int, WordsHeard], segment: int) -> int:
        """Return how many words at the beginning of a segment were used.

        Args:
            words: The words of the turn, by segment.
            segment: One of them.
        """
        if not self._repeats:
            return self._counts.get(segment, 0)
        before = sum(len(heard.text.split()) for n, heard in words.items() if n < segment)
        return max(0, repeated(_joined(words), self._repeats) - before)


def _joined(words: Mapping[int, WordsHeard]) -> list[str]:
    return [word for n in sorted(words) for word in words[n].text.split()]


def repeated(words: Sequence[str], earlier: Sequence[str]) -> int:
    """Return how many words repeat earlier ones; 0 if they are others.

    Args:
        words: The words, which may go on behind the repetition, or end within it.
        earlier: The earlier words.
    """
    known = [_plain(word) for word in earlier]
    plain = [_plain(word) for word in words]
    if plain[: len(known)] == known[: len(plain)]:
        return min(len(plain), len(known))
    text = "".join(known)
    if len("".join(plain)) < len(text):
        text = text[: len("".join(plain))]
    counts = range(1, len(plain) + 1)
    likeness = {n: SequenceMatcher(None, "".join(plain[:n]), text).ratio() for n in counts}
    best = max(counts, key=lambda n: likeness[n], default=0)
    return best if best and likeness[best] >= ALIKE else 0


def _plain(word: str) -> str:
    return re.sub(r"\W", "", word.casefold())
