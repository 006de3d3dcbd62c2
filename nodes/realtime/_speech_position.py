"""Which part of the vendor's conversation each utterance says, to the millisecond."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(slots=True)
class _Part:
    """Audio of one item, within an utterance."""

    item: str
    lasts_ms: float


class GivenSpeech:
    """The utterances of a call that may still be cut, and the items that they say."""

    def __init__(self) -> None:
        """Begin with none."""
        self._parts: dict[int, list[_Part]] = {}

    @property
    def utterances(self) -> tuple[int, ...]:
        """The numbers of the utterances of which it is not known what was heard."""
        return tuple(self._parts)

    def add(self, utterance: int, item: str, lasts_ms: float) -> None:
        """Record that an utterance goes on with some audio of an item."""
        parts = self._parts.setdefault(utterance, [])
        if parts and parts[-1].item == item:
            parts[-1].lasts_ms += lasts_ms
        else:
            parts.append(_Part(item, lasts_ms))

    def forget(self, utterance: int) -> None:
        """Forget an utterance: it was heard to its end, or the vendor knows nothing of it."""
        self._parts.pop(utterance, None)

    def clear(self) -> None:
        """Forget all."""
        self._parts.clear()

    def cut(self, utterance: int, heard_ms: float) -> Iterator[tuple[str, int]]:
        """Yield the items of which something was not heard, and how much of each was.

        Args:
            utterance: The number of the utterance.
            heard_ms: How much of its audio was played.
        """
        left_ms = heard_ms
        parts = self._parts.pop(utterance, [])
        for part in parts:
            if left_ms < part.lasts_ms or part is parts[-1]:  # of the last one there may be more
                yield part.item, int(min(max(left_ms, 0.0), part.lasts_ms))
            left_ms -= part.lasts_ms
