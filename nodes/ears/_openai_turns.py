"""The caller's turns as OpenAI's Realtime API tells them, to its ear and to its speaking models.

By the types of the vendor's SDK 3.54.  The vendor cuts the caller's audio into *items*, one for
each stretch of voice; its recogniser gives the words of an item once the item is committed, so the
next one may have begun by then.

Rule 1. A turn is the items that follow one another until all their words are known and nobody
speaks.
Rule 2. The words of an item are a segment of the turn.  Words that are not final are told only
while their item is spoken: told later, they would be a voice that goes on.
Rule 3. What comes late of an item of a turn that is over is dropped: it would begin another one.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from bargein.nodes.speech import EarFact, PerhapsOver, TurnOver, VoiceBegan, WentOn, WordsHeard

log = structlog.get_logger()

PAST_ITEMS = 64
"""How many items that are over are known; messages are not later than that."""

HEARS = "conversation.item.input_audio_transcription."


@dataclass(slots=True)
class _Item:
    """A stretch of voice."""

    segment: int
    words: str = ""
    is_known: bool = False


class OpenAITurns:
    """Makes an ear's facts of the messages that tell of the caller's audio.

    Attributes:
        spoken: The item that is being spoken; empty while nobody speaks.
    """

    def __init__(self) -> None:
        """Begin between two turns."""
        self.spoken = ""
        self._items: dict[str, _Item] = {}
        self._past: deque[str] = deque(maxlen=PAST_ITEMS)

    def restart(self) -> None:
        """Forget the turn."""
        self.spoken = ""
        self._items.clear()
        self._past.clear()

    def facts(self, message: Mapping[str, Any]) -> Iterable[EarFact]:
        """Yield what a message tells of the caller; nothing for a message of another kind.

        Args:
            message: A JSON object; nothing of it is certain.

        Raises:
            Exception: `message` is none of the vendor's messages: KeyError, TypeError.
        """
        kind = message["type"]
        if message.get("item_id") in self._past:
            return
        if kind == "input_audio_buffer.speech_started":
            name = str(message["item_id"])
            if name not in self._items:  # else it is told twice, or behind its end
                yield from self._begin_item(name)
                self.spoken = name
        elif kind in ("input_audio_buffer.speech_stopped", "input_audio_buffer.committed"):
            yield from self._stop_item(str(message["item_id"]))
        elif kind == HEARS + "delta":
            yield from self._add_words(str(message["item_id"]), str(message.get("delta") or ""))
        elif kind == HEARS + "completed":
            yield from self._complete(message)
        elif kind == HEARS + "failed":
            error = message.get("error") or {}
            log.warning("item_not_transcribed", vendor="OpenAI", code=str(error.get("code") or ""))
            item = self._items.get(str(message["item_id"]))
            if item is not None:
                item.is_known = True
                yield from self._end_turn()

    def _begin_item(self, name: str) -> Iterable[EarFact]:
        if name not in self._items:
            yield WentOn() if self._items else VoiceBegan()
            self._items[name] = _Item(len(self._items))

    def _stop_item(self, name: str) -> Iterable[EarFact]:
        """End a stretch of voice; one that a client commits by hand gets another name."""
        if name in self._items and self.spoken != name:
            return  # both messages tell it
        if self.spoken and name not in self._items:
            self._items[name] = self._items.pop(self.spoken)
        yield from self._begin_item(name)
        self.spoken = ""
        yield PerhapsOver()

    def _add_words(self, name: str, words: str) -> Iterable[EarFact]:
        if name not in self._items:  # of a model that streams words and detects no voice
            yield from self._begin_item(name)
            self.spoken = name
        item = self._items[name]
        item.words += words
        if self.spoken == name:
            yield WordsHeard(item.words, item.segment)

    def _complete(self, message: Mapping[str, Any]) -> Iterable[EarFact]:
        item = self._items.get(str(message["item_id"]))
        if item is None or item.is_known:
            return
        item.words, item.is_known = str(message["transcript"]), True
        codes = [str(one["code"]) for one in message.get("languages") or ()]
        yield WordsHeard(
            item.words,
            item.segment,
            final=True,
            confidence=confidence(message.get("logprobs") or ()),
            language=codes[0] if codes else "",
        )
        yield from self._end_turn()

    def _end_turn(self) -> Iterable[EarFact]:
        if not self.spoken and all(item.is_known for item in self._items.values()):
            self._past += self._items
            self._items.clear()
            yield TurnOver()


def confidence(logprobs: Sequence[Mapping[str, Any]]) -> float | None:
    """Return how sure a recogniser is of a text: the geometric mean of its tokens' probabilities.

    Args:
        logprobs: The tokens with their ``logprob``; none where they were not asked for.
    """
    known = [one.get("logprob") for one in logprobs]
    logs = [float(log) for log in known if isinstance(log, int | float)]
    return min(1.0, math.exp(sum(logs) / len(logs))) if logs else None


def turn_detection(
    turns: str, *, silence_s: float | None, threshold: float | None, eagerness: str | None
) -> dict[str, Any] | None:
    """Return what the vendor is asked to do about turns; it never answers or cuts by itself.

    Args:
        turns: ``"semantic"``, ``"silence"``, or ``"none"``.
        silence_s: After so much silence a turn is over, for ``"silence"``.
        threshold: How loud a voice is, 0 to 1, for ``"silence"``.
        eagerness: How soon a turn is over, for ``"semantic"``.

    Raises:
        ValueError: There is no such way, or a setting belongs to another one.
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
