"""Distinguishes the agent's own words in the caller's microphone from the caller's words."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from bargein.bridge.languages import words_of

SHORTEST_RUN = 4
"""How many characters in a row have to match to count: fewer match by chance in most pairs of
sentences."""


def similarity(heard: str, saying: str) -> float:
    """Return the share of heard words that the agent is saying, in that order, 0 to 1.

    Compares words and characters, and the higher share counts: recognisers split the words of an
    echo in other places ("ware house").
    """
    words, said = words_of(heard), words_of(saying)
    if not words or not said:
        return 0.0
    by_words = _share(words, said, 1)
    return max(by_words, _share("".join(words), "".join(said), SHORTEST_RUN))


def _share(heard: Sequence[str], said: Sequence[str], shortest: int) -> float:
    matcher = SequenceMatcher(None, heard, said, autojunk=False)
    sizes = (block.size for block in matcher.get_matching_blocks())
    return sum(size for size in sizes if size >= shortest) / len(heard)
