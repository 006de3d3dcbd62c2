"""Byte-level BPE with the alphabet and tokens of GPT-2 and Whisper."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

_SPECIAL = re.compile(r"<\|.*?\|>")
_CHUNK = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+")
"""The chunks that merges never cross: a word with the space before it, digits, punctuation."""


def decode(tokens: Sequence[str]) -> str:
    """Return the text of tokens; special ones (``<|...|>``) are left out."""
    letters = _SPECIAL.sub("", "".join(tokens))
    table = _byte_of_letter()
    return bytes(table[letter] for letter in letters).decode("utf-8", "replace")


class Encoder:
    """Splits text into the tokens of one model."""

    def __init__(self, tokenizer: Path) -> None:
        """Read the merges.

        Args:
            tokenizer: A ``tokenizer.json`` with a BPE model.
        """
        merges = json.loads(tokenizer.read_text("utf-8"))["model"]["merges"]
        pairs = (merge.split(" ") if isinstance(merge, str) else merge for merge in merges)
        self._ranks = {(left, right): rank for rank, (left, right) in enumerate(pairs)}

    def encode(self, text: str) -> list[str]:
        """Return the tokens of a text."""
        return [token for chunk in _CHUNK.findall(text) for token in self._merge(chunk)]

    def _merge(self, chunk: str) -> Iterator[str]:
        letters = {byte: letter for letter, byte in _byte_of_letter().items()}
        parts = [letters[byte] for byte in chunk.encode()]
        while len(parts) > 1:
            best = min(pairwise(parts), key=lambda pair: self._ranks.get(pair, len(self._ranks)))
            if best not in self._ranks:
                break
            at = next(index for index, pair in enumerate(pairwise(parts)) if pair == best)
            parts[at : at + 2] = ["".join(best)]
        yield from parts


@cache
def _byte_of_letter() -> dict[str, int]:
    """Return the alphabet: printable bytes stand for themselves, others follow from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    table = {chr(byte): byte for byte in printable}
    table.update({chr(0x100 + index): byte for index, byte in enumerate(others)})
    return table
