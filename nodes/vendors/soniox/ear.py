"""Soniox's speech recogniser (``/transcribe-websocket``), by the vendor's SDK 2.10 and its public
documentation.

Each message has tokens: parts of words, whose spaces are tokens or parts of tokens. A final token
comes once; tokens that are not final come again until they are. ``<end>`` and ``<fin>`` are final
tokens, too: the end of a turn by the vendor's model, and the answer to ``finalize``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from bargein.bridge.events import WordTiming
from bargein.bridge.validation.arguments import check_strings
from bargein.bridge.validation.numbers import check_range
from bargein.bridge.websocket import Data
from bargein.nodes.services import (
    LineArguments,
    Vendor,
    lowest_probability,
    objects_of,
    text_of,
)
from bargein.nodes.services.vendor_ear import SAMPLE_RATE_HZ, PlainEarCodec, VendorEar
from bargein.nodes.speech import EarFact, TurnOver, WordsHeard

from .errors import SONIOX_ERRORS

__all__ = ["SonioxEar"]

SONIOX = Vendor(
    errors=SONIOX_ERRORS,
    url="wss://stt-rt.soniox.com/transcribe-websocket",
    variables="SONIOX",
)

ENDS = {"<end>", "<fin>"}

Token = Mapping[str, Any]


class SonioxEar(VendorEar):
    """Hears with Soniox's model, which detects the ends of turns itself.

    It reports the words of a whole turn with their times and language.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        model: str = "stt-rt-v5",
        languages: Sequence[str] = (),
        keyterms: Sequence[str] = (),
        diarize: bool = False,
        longest_delay_s: float | None = None,
        sensitivity: float | None = None,
        **line: Unpack[LineArguments],
    ) -> None:
        """Configure the ear; nothing connects yet.

        Args:
            api_key: The key; ``None`` reads SONIOX_API_KEY.
            model: The vendor's name of the model.
            languages: ISO 639 codes of the languages that callers are likely to speak.
            keyterms: Words that callers are likely to use, for the vendor's model.
            diarize: Whether to report who spoke.
            longest_delay_s: Longest time from the end of speech to the end of the turn, 0.5 to 3
                seconds; ``None`` for the vendor's default.
            sensitivity: How readily the model ends a turn, -1 to 1; ``None`` for the vendor's
                default.
            line: Where and how it connects, as `LineArguments` says.

        Raises:
            TypeError: `languages` or `keyterms` is not a list of strings, a number is none, or
                `headers` or `query` is no mapping.
            ValueError: There is no key, an address or a header that cannot be used, or a number
                out of bounds.
        """
        check_strings("SonioxEar(languages=)", languages)
        check_strings("SonioxEar(keyterms=)", keyterms)
        check_range("SonioxEar(longest_delay_s=)", longest_delay_s, 0.5, 3, optional=True)
        check_range("SonioxEar(sensitivity=)", sensitivity, -1, 1, optional=True)
        config = {
            "model": model,
            "audio_format": "pcm_s16le",
            "sample_rate": SAMPLE_RATE_HZ,
            "num_channels": 1,
            "language_hints": [*languages] or None,
            "context": {"terms": [*keyterms]} if keyterms else None,
            "enable_language_identification": True,
            "enable_speaker_diarization": diarize or None,
            "enable_endpoint_detection": True,
            "max_endpoint_delay_ms": longest_delay_s and round(1000 * longest_delay_s),
            "endpoint_sensitivity": sensitivity,
        }
        given = {name: value for name, value in config.items() if value is not None}
        address = SONIOX.at(type(self).__name__, api_key, line).address(
            greeting=(json.dumps(given),), keep_alive='{"type": "keepalive"}', farewell=""
        )
        super().__init__(address, TokenCodec, limits=line.get("limits"), dial=line.get("dial"))


class TokenCodec(PlainEarCodec):
    """The messages of ``/transcribe-websocket``."""

    piece_s = 0.1

    def __init__(self) -> None:
        self._final: list[Token] = []  # of the turn
        self._over_ms = -math.inf  # when the last word of the newest turn that is over ended

    def end_turn(self) -> Data:
        return '{"type": "finalize"}'

    def restart(self) -> None:
        self._final, self._over_ms = [], -math.inf

    def facts(self, message: Mapping[str, Any]) -> Iterable[EarFact]:
        if message.get("error_code") is not None:
            SONIOX_ERRORS.check(
                "ended the session",
                message.get("error_type"),
                status=message["error_code"],
                detail=message.get("error_message"),
            )
        passing: list[Token] = []  # what is heard of the turn so far, and may change
        is_new = False
        for token in objects_of(message.get("tokens")):
            is_final = token.get("is_final") is True
            if is_final and token.get("text") in ENDS:
                # A turn of which the vendor has no words is over, too, once they were reported.
                yield _over(self._final)
                ends_ms = [ms for ms in map(_end_ms, self._final) if ms < math.inf]
                self._over_ms = max([self._over_ms, *ends_ms])
                self._final, passing, is_new = [], [], False
            elif self._belongs(token):
                is_new = True
                (self._final if is_final else passing).append(token)
        if is_new:
            heard = [*self._final, *passing]
            yield WordsHeard(
                _text(heard),
                confidence=_sure(heard),
                language=_last(heard, "language"),
                speaker=_last(heard, "speaker"),
                words=_words(heard),
            )

    def _belongs(self, token: Token) -> bool:
        """Whether a token is of this turn: no translation, and nothing of a turn that is over."""
        is_late = _end_ms(token) <= self._over_ms
        is_translated = token.get("translation_status") == "translation"
        return bool(text_of(token.get("text"))) and not is_late and not is_translated


def _over(tokens: Sequence[Token]) -> TurnOver:
    return TurnOver(
        _text(tokens),
        _sure(tokens),
        language=_last(tokens, "language"),
        speaker=_last(tokens, "speaker"),
        words=_words(tokens),
    )


def _text(tokens: Iterable[Token]) -> str:
    return "".join(text_of(token.get("text")) for token in tokens).strip()


def _sure(tokens: Iterable[Token]) -> float | None:
    return lowest_probability(token.get("confidence") for token in tokens)


def _last(tokens: Sequence[Token], name: str) -> str:
    """Return the newest value of a field that not every token has."""
    return next((str(token[name]) for token in reversed(tokens) if token.get(name)), "")


def _end_ms(token: Token) -> float:
    """Return when a token ends, in milliseconds of the line's audio; infinity if it has no time."""
    end_ms = token.get("end_ms")
    return end_ms if isinstance(end_ms, int) else math.inf


def _words(tokens: Iterable[Token]) -> tuple[WordTiming, ...]:
    """Return the words that the tokens make, each from its first token to its last."""
    words: list[WordTiming] = []
    is_between = True
    for token in tokens:
        text, start, end = text_of(token.get("text")), token.get("start_ms"), token.get("end_ms")
        part = text.strip()
        is_between = is_between or text[:1].isspace()
        if part and isinstance(start, int | float) and isinstance(end, int | float):
            if is_between or not words:
                words.append(WordTiming(part, start / 1000, end / 1000))
            else:
                words[-1] = WordTiming(words[-1].text + part, words[-1].start_s, end / 1000)
            is_between = False
        is_between = is_between or text[-1:].isspace()
    return tuple(words)
