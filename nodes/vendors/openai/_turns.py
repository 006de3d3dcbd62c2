"""The caller's turns in OpenAI's Realtime API, for its speech recogniser and its realtime models.

By the types of the vendor's SDK 3.54. The vendor cuts the caller's audio into *items*, one for each
stretch of speech. It transcribes an item after the item is committed, so the next one may have
begun by then.

Rule 1. A turn is all items in a row until nobody speaks and all their words are known.
Rule 2. The words of an item are a segment of the turn.  Words that are not final are reported only
while their item is spoken; later they would mean that the caller is still speaking.
Rule 3. Late messages about an item of a finished turn are dropped: they would start another turn.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bargein.nodes.services import object_of, objects_of, text_of
from bargein.nodes.speech import EarFact, PerhapsOver, TurnOver, VoiceBegan, WentOn, WordsHeard
from bargein.routes.logs import get_logger

log = get_logger()

PAST_ITEMS = 64
"""How many finished items are remembered; no message comes later than that."""

HEARS = "conversation.item.input_audio_transcription."


@dataclass(slots=True)
class _Item:
    """A stretch of speech."""

    segment: int
    words: str = ""
    is_known: bool = False


class OpenAITurns:
    """Turns messages about the caller's audio into an ear's facts.

    Attributes:
        spoken: The item that is being spoken; empty while nobody speaks.
    """

    def __init__(self) -> None:
        self.spoken = ""
        self._items: dict[str, _Item] = {}
        self._past: deque[str] = deque(maxlen=PAST_ITEMS)

    def restart(self) -> None:
        self.spoken = ""
        self._items.clear()
        self._past.clear()

    def facts(self, message: Mapping[str, Any]) -> Iterable[EarFact]:
        """Yield the facts about the caller in a message; none for a message of another kind.

        Args:
            message: A JSON object, otherwise unchecked.

        Raises:
            Exception: `message` is not one of the vendor's: KeyError, TypeError.
        """
        kind = message["type"]
        if message.get("item_id") in self._past:
            return
        if kind == "input_audio_buffer.speech_started":
            name = str(message["item_id"])
            if name not in self._items:  # else this is a repeat, or comes after its end
                yield from self._start_item(name)
                self.spoken = name
        elif kind in ("input_audio_buffer.speech_stopped", "input_audio_buffer.committed"):
            yield from self._stop_item(str(message["item_id"]))
        elif kind == HEARS + "delta":
            yield from self._add_words(str(message["item_id"]), text_of(message.get("delta")))
        elif kind == HEARS + "completed":
            yield from self._complete(message)
        elif kind == HEARS + "failed":
            error = object_of(message.get("error"))
            log.warning("item_not_transcribed", vendor="OpenAI", code=str(error.get("code") or ""))
            item = self._items.get(str(message["item_id"]))
            if item is not None:
                item.is_known = True
                yield from self._end_turn()

    def _start_item(self, name: str) -> Iterable[EarFact]:
        if name not in self._items:
            yield WentOn() if self._items else VoiceBegan()
            self._items[name] = _Item(len(self._items))

    def _stop_item(self, name: str) -> Iterable[EarFact]:
        """End a stretch of speech; the vendor renames one that a client commits."""
        if name in self._items and self.spoken != name:
            return  # the other of the two messages came first
        if self.spoken and name not in self._items:
            self._items[name] = self._items.pop(self.spoken)
        yield from self._start_item(name)
        self.spoken = ""
        yield PerhapsOver()

    def _add_words(self, name: str, words: str) -> Iterable[EarFact]:
        if name not in self._items:  # from a model that streams words and detects no speech
            yield from self._start_item(name)
            self.spoken = name
        item = self._items[name]
        item.words += words
        if self.spoken == name:
            yield WordsHeard(item.words, item.segment)

    def _complete(self, message: Mapping[str, Any]) -> Iterable[EarFact]:
        item = self._items.get(str(message["item_id"]))
        if item is None or item.is_known:
            return
        item.words, item.is_known = text_of(message.get("transcript")), True
        codes = [text_of(one.get("code")) for one in objects_of(message.get("languages"))]
        yield WordsHeard(
            item.words,
            item.segment,
            final=True,
            confidence=confidence(objects_of(message.get("logprobs"))),
            language=codes[0] if codes else "",
        )
        yield from self._end_turn()

    def _end_turn(self) -> Iterable[EarFact]:
        if not self.spoken and all(item.is_known for item in self._items.values()):
            self._past += self._items
            self._items.clear()
            yield TurnOver()


def confidence(logprobs: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the confidence in a text: the geometric mean of its tokens' probabilities.

    Args:
        logprobs: The tokens with their ``logprob``; empty if they were not requested.
    """
    known = [one.get("logprob") for one in logprobs]
    logs = [float(log) for log in known if isinstance(log, int | float)]
    return min(1.0, math.exp(sum(logs) / len(logs))) if logs else None


def turn_detection(
    turns: str, *, silence_s: float | None, threshold: float | None, eagerness: str | None
) -> dict[str, Any] | None:
    """Return the vendor's turn detection settings; it never answers or interrupts by itself.

    Args:
        turns: ``"semantic"``, ``"silence"``, or ``"none"``.
        silence_s: Silence that ends a turn, in seconds, for ``"silence"``.
        threshold: How loud speech has to be, 0 to 1, for ``"silence"``.
        eagerness: How soon a turn ends, for ``"semantic"``.

    Raises:
        ValueError: `turns` is none of these, or a setting belongs to another one.
    """
    if turns not in ("semantic", "silence", "none"):
        raise ValueError(f'turns= is "semantic", "silence" or "none", not {turns!r}')
    given = {
        "silence_duration_ms": None if silence_s is None else round(1000 * silence_s),
        "threshold": threshold,
        "eagerness": eagerness,
    }
    wanted = {name: value for name, value in given.items() if value is not None}
    fits = {
        "semantic": {"eagerness"},
        "silence": {"silence_duration_ms", "threshold"},
        "none": set(),
    }
    if not wanted.keys() <= fits[turns]:
        raise ValueError(
            f"turns={turns!r} takes no {', '.join(sorted(wanted.keys() - fits[turns]))}: "
            'silence_s= and threshold= are of turns="silence", eagerness= of turns="semantic"'
        )
    if turns == "none":
        return None
    kind = "semantic_vad" if turns == "semantic" else "server_vad"
    return {"type": kind, **wanted}
