"""Deepgram's speech recognisers: Flux (``/v2/listen``) and Nova (``/v1/listen``).

By the vendor's SDK 7.17 and public documentation. Flux detects turns, and each of its messages
holds the whole turn. A message of Nova holds what is new since its last final words, and Nova
reports the end of speech apart from the end of words.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from bargein.bridge.validation.arguments import check_strings
from bargein.bridge.websocket import Data
from bargein.nodes.services import (
    LineArguments,
    count_of,
    lowest_probability,
    number_of,
    object_of,
    objects_of,
    probability,
    text_of,
    timed_words,
)
from bargein.nodes.services.vendor_ear import SAMPLE_RATE_HZ, PlainEarCodec, VendorEar
from bargein.nodes.speech import EarFact, PerhapsOver, TurnOver, VoiceBegan, WentOn, WordsHeard
from bargein.routes.logs import get_logger

from ._address import DEEPGRAM
from .errors import DEEPGRAM_ERRORS

__all__ = ["DeepgramFlux", "DeepgramNova"]

log = get_logger()

CLOSE = json.dumps({"type": "CloseStream"})


class DeepgramFlux(VendorEar):
    """Hears with Deepgram's Flux, which detects turns itself.

    It reports the words of a whole turn, how likely the turn is over, and that it went on.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        model: str = "flux-general-en",
        language_hints: Sequence[str] = (),
        keyterms: Sequence[str] = (),
        eager_threshold: float | None = 0.4,
        end_threshold: float | None = None,
        end_timeout_s: float | None = None,
        **line: Unpack[LineArguments],
    ) -> None:
        """Configure the ear; nothing connects yet.

        Args:
            api_key: The key; ``None`` reads DEEPGRAM_API_KEY.
            model: The vendor's name of the model; ``flux-general-multi`` hears several languages.
            language_hints: Likely languages, for a multilingual model.
            keyterms: Words that callers are likely to use, for the vendor's model.
            eager_threshold: Confidence from which the ear reports `PerhapsOver`, 0.3 to 0.9;
                ``None`` never reports it.
            end_threshold: Confidence from which a turn is over, 0.5 to 0.9; ``None`` for the
                vendor's default.
            end_timeout_s: Silence that ends a turn at any confidence, in seconds; ``None`` for the
                vendor's default.
            line: Where and how it connects, as `LineArguments` says.

        Raises:
            TypeError: `keyterms` is not a list of strings, or `headers` or `query` is no mapping.
            ValueError: There is no key, or an address or a header that cannot be used.
        """
        check_strings("DeepgramFlux(keyterms=)", keyterms)
        check_strings("DeepgramFlux(language_hints=)", language_hints)
        asked = {
            "model": model,
            "encoding": "linear16",
            "sample_rate": SAMPLE_RATE_HZ,
            "eager_eot_threshold": eager_threshold,
            "eot_threshold": end_threshold,
            "eot_timeout_ms": None if end_timeout_s is None else round(1000 * end_timeout_s),
            "keyterm": keyterms,
            "language_hint": language_hints,
        }
        at = DEEPGRAM.at(type(self).__name__, api_key, line)
        address = at.address("/v2/listen", asked, farewell=CLOSE)
        super().__init__(address, FluxCodec, limits=line.get("limits"), dial=line.get("dial"))


class FluxCodec(PlainEarCodec):
    """The messages of ``/v2/listen``."""

    piece_s = 0.08  # as the vendor recommends

    def __init__(self) -> None:
        self._over = -1  # the number of the newest turn that is over

    def end_turn(self) -> Data:
        return json.dumps({"type": "ForceEndTurn"})

    def restart(self) -> None:
        self._over = -1

    def facts(self, message: Mapping[str, Any]) -> Iterable[EarFact]:
        match message["type"]:
            case "TurnInfo":
                yield from self._turn(message)
            case "Error":
                code, text = message.get("code"), message.get("description")
                DEEPGRAM_ERRORS.check("ended the stream", code, detail=text)
            case "Warning" | "ConfigureFailure":
                log.warning(
                    "vendor_warning",
                    vendor=DEEPGRAM_ERRORS.vendor,
                    code=str(message.get("code", "")),
                )

    def _turn(self, info: Mapping[str, Any]) -> Iterable[EarFact]:
        event, text = info["event"], text_of(info.get("transcript"))
        told = count_of(info.get("turn_index"))
        number = self._over + 1 if told is None else told
        if number <= self._over:
            return  # a late message of a turn that is over
        words = objects_of(info.get("words"))
        sure = lowest_probability(word.get("confidence") for word in words)
        if event == "StartOfTurn":
            yield VoiceBegan()
        elif event == "TurnResumed":
            yield WentOn()
        if event == "EndOfTurn":
            self._over = number
            language = _first(_list(info.get("languages")))
            yield TurnOver(text, sure, language=language, words=timed_words(words, "word", per_s=1))
            return
        if text:
            yield WordsHeard(text, confidence=sure)
        if event == "EagerEndOfTurn":
            yield PerhapsOver(probability(info.get("end_of_turn_confidence")))


class DeepgramNova(VendorEar):
    """Hears with Deepgram's Nova, which ends a turn after a silence.

    With ``TurnSettings(endpointing=ModelEndpointing())``, bargein's end-of-turn model decides
    instead.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        model: str = "nova-3",
        language: str | None = None,
        keyterms: Sequence[str] = (),
        silence_s: float = 0.3,
        diarize: bool = False,
        **line: Unpack[LineArguments],
    ) -> None:
        """Configure the ear; nothing connects yet.

        Args:
            api_key: The key; ``None`` reads DEEPGRAM_API_KEY.
            model: The vendor's name of the model.
            language: A BCP 47 tag, or ``"multi"``; ``None`` for the vendor's default.
            keyterms: Words that callers are likely to use, for the vendor's model.
            silence_s: Silence that ends a turn, in seconds.
            diarize: Whether to label speakers.
            line: Where and how it connects, as `LineArguments` says.

        Raises:
            TypeError: `keyterms` is not a list of strings, or `headers` or `query` is no mapping.
            ValueError: There is no key, or an address or a header that cannot be used.
        """
        check_strings("DeepgramNova(keyterms=)", keyterms)
        asked = {
            "model": model,
            "encoding": "linear16",
            "sample_rate": SAMPLE_RATE_HZ,
            "language": language,
            "interim_results": "true",
            "vad_events": "true",
            "punctuate": "true",
            "smart_format": "true",
            "endpointing": round(1000 * silence_s),
            "utterance_end_ms": 1000,
            "keyterm": keyterms,
            "diarize": "true" if diarize else None,
        }
        keep_alive = json.dumps({"type": "KeepAlive"})
        at = DEEPGRAM.at(type(self).__name__, api_key, line)
        address = at.address("/v1/listen", asked, keep_alive=keep_alive, farewell=CLOSE)
        super().__init__(address, NovaCodec, limits=line.get("limits"), dial=line.get("dial"))


class NovaCodec(PlainEarCodec):
    """The messages of ``/v1/listen``."""

    piece_s = 0.06

    def __init__(self) -> None:
        self._segment = 0
        self._parts: list[Mapping[str, Any]] = []
        self._over_s = -math.inf  # the end of what was reported, in the line's audio
        self._turn_start_s = -math.inf  # where the open turn begins, if the vendor has said so

    def end_turn(self) -> Data:
        return json.dumps({"type": "Finalize"})

    def restart(self) -> None:
        """Forget the segments of the turn, and count time from 0 again."""
        self._forget()
        self._over_s = self._turn_start_s = -math.inf

    def _forget(self) -> None:
        self._segment = 0
        self._parts.clear()

    def facts(self, message: Mapping[str, Any]) -> Iterable[EarFact]:
        match message["type"]:
            case "SpeechStarted":
                began_s = number_of(message.get("timestamp"), self._over_s)
                if began_s >= self._over_s:
                    if math.isinf(self._turn_start_s):
                        self._turn_start_s = began_s
                    yield VoiceBegan()
            case "Results":
                yield from self._results(message)
            case "UtteranceEnd":
                end_s = number_of(message.get("last_word_end"), math.inf)
                if not self._is_late(end_s):
                    self._over_s = self._over_s if math.isinf(end_s) else end_s
                    yield self._over()
            case "Error":
                DEEPGRAM_ERRORS.check(
                    "ended the stream",
                    message.get("code"),
                    message.get("variant"),
                    detail=message.get("description"),
                )

    def _is_late(self, end_s: float) -> bool:
        """Return whether what ends then is of a turn that is over."""
        return end_s <= max(self._over_s, self._turn_start_s)

    def _results(self, message: Mapping[str, Any]) -> Iterable[EarFact]:
        end_s = number_of(message.get("start"), math.inf) + number_of(message.get("duration"))
        best, *_ = [*objects_of(object_of(message.get("channel")).get("alternatives")), {}]
        text = text_of(best.get("transcript"))
        spoken = timed_words(
            best.get("words"),
            *("punctuated_word", "word"),
            per_s=1,
        )
        if self._is_late(end_s) or (spoken and spoken[0].start_s < self._over_s):
            return
        is_final = message.get("is_final") is True
        if text:
            sure = probability(best.get("confidence"))
            words = objects_of(best.get("words"))
            yield WordsHeard(
                text,
                self._segment,
                final=is_final,
                confidence=sure,
                language=_first(_list(best.get("languages"))),
                speaker=_first(word.get("speaker") for word in words),
                words=timed_words(words, "punctuated_word", "word", per_s=1),
            )
            if is_final:
                self._segment += 1
                self._parts.append(best)
        if message.get("speech_final") is True or message.get("from_finalize") is True:
            self._over_s = self._over_s if math.isinf(end_s) else end_s
            yield self._over()

    def _over(self) -> TurnOver:
        words = [word for part in self._parts for word in objects_of(part.get("words"))]
        over = TurnOver(
            language=_first(name for part in self._parts for name in _list(part.get("languages"))),
            speaker=_first(word.get("speaker") for word in words),
            words=timed_words(words, "punctuated_word", "word", per_s=1),
        )
        self._forget()
        self._turn_start_s = -math.inf
        return over


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _first(names: Iterable[object]) -> str:
    """Return the first name that is not None; empty if there is none."""
    return next((str(name) for name in names if name is not None), "")
