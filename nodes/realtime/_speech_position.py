"""Maps utterances to the vendor's items, to the millisecond."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(slots=True)
class _ItemAudio:
    """The audio of one item in an utterance."""

    item: str
    lasts_ms: float


class SpokenUtterances:
    """The utterances of a call that may still be interrupted, and the items that they say."""

    def __init__(self) -> None:
        self._parts: dict[int, list[_ItemAudio]] = {}

    @property
    def utterances(self) -> tuple[int, ...]:
        """The numbers of the utterances for which it is not known how much was heard."""
        return tuple(self._parts)

    def add(self, utterance: int, item: str, lasts_ms: float) -> None:
        """Add some audio of an item to an utterance."""
        parts = self._parts.setdefault(utterance, [])
        if parts and parts[-1].item == item:
            parts[-1].lasts_ms += lasts_ms
        else:
            parts.append(_ItemAudio(item, lasts_ms))

    def forget(self, utterance: int) -> None:
        """Forget an utterance: it was heard to its end, or the vendor knows nothing of it."""
        self._parts.pop(utterance, None)

    def clear(self) -> None:
        """Forget all utterances."""
        self._parts.clear()

    def cut(self, utterance: int, heard_ms: float) -> Iterator[tuple[str, int]]:
        """Yield the items that were not heard whole, each with how many milliseconds were heard.

        Args:
            utterance: The number of the utterance.
            heard_ms: How much of its audio was played.
        """
        left_ms = heard_ms
        parts = self._parts.pop(utterance, [])
        for part in parts:
            if left_ms < part.lasts_ms or part is parts[-1]:  # the last item may have more audio
                yield part.item, int(min(max(left_ms, 0.0), part.lasts_ms))
            left_ms -= part.lasts_ms
