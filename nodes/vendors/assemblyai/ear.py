"""AssemblyAI's speech recogniser (``/v3/ws``), by the vendor's SDK 1.8 and public documentation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Unpack

from bargein.bridge.validation.arguments import check_strings
from bargein.bridge.websocket import Data
from bargein.nodes.services import (
    LineArguments,
    Vendor,
    count_of,
    lowest_probability,
    objects_of,
    text_of,
    timed_words,
)
from bargein.nodes.services.vendor_ear import SAMPLE_RATE_HZ, PlainEarCodec, VendorEar
from bargein.nodes.speech import EarFact, TurnOver, VoiceBegan, WordsHeard
from bargein.routes.logs import get_logger

from .errors import ASSEMBLYAI_ERRORS

__all__ = ["AssemblyAIEar"]

log = get_logger()

ASSEMBLYAI = Vendor(
    errors=ASSEMBLYAI_ERRORS,
    url="wss://streaming.assemblyai.com",
    variables="ASSEMBLYAI",
    key_form="{}",
)


class AssemblyAIEar(VendorEar):
    """Hears with AssemblyAI's streaming model, which detects the ends of turns itself.

    It reports the words of a whole turn with their times, the speaker and the language.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        model: str | None = None,
        keyterms: Sequence[str] = (),
        format_turns: bool = False,
        end_threshold: float | None = None,
        shortest_silence_s: float | None = None,
        longest_silence_s: float | None = None,
        **line: Unpack[LineArguments],
    ) -> None:
        """Configure the ear; nothing connects yet.

        Args:
            api_key: The key; ``None`` reads ASSEMBLYAI_API_KEY.
            model: The vendor's name of the model; ``None`` for the vendor's default.
            keyterms: Words that callers are likely to use, for the vendor's model.
            format_turns: Whether the final words have punctuation and digits; they arrive later
                then.
            end_threshold: Confidence from which a turn is over, 0 to 1; ``None`` for the vendor's
                default.
            shortest_silence_s: Silence that ends a turn that the model is sure is over, in seconds;
                ``None`` for the vendor's default.
            longest_silence_s: Silence that ends any turn, in seconds; ``None`` for the vendor's
                default.
            line: Where and how it connects, as `LineArguments` says.

        Raises:
            TypeError: `keyterms` is not a list of strings, or `headers` or `query` is no mapping.
            ValueError: There is no key, or an address or a header that cannot be used.
        """
        check_strings("AssemblyAIEar(keyterms=)", keyterms)
        asked = {
            "sample_rate": SAMPLE_RATE_HZ,
            "encoding": "pcm_s16le",
            "speech_model": model,
            "format_turns": "true" if format_turns else None,
            "end_of_turn_confidence_threshold": end_threshold,
            "min_turn_silence": _ms(shortest_silence_s),
            "max_turn_silence": _ms(longest_silence_s),
            "keyterms_prompt": json.dumps([*keyterms]) if keyterms else None,
        }
        address = ASSEMBLYAI.at(type(self).__name__, api_key, line).address(
            "/v3/ws", asked, keep_alive='{"type": "KeepAlive"}', farewell='{"type": "Terminate"}'
        )
        codec = partial(TurnCodec, formatted=format_turns)
        super().__init__(address, codec, limits=line.get("limits"), dial=line.get("dial"))


class TurnCodec(PlainEarCodec):
    """The messages of ``/v3/ws``."""

    piece_s = 0.1  # 0.05 to 1 s, or the vendor ends the session with 3007

    def __init__(self, *, formatted: bool) -> None:
        self._formatted = formatted
        self._over = -1  # the number of the newest turn that is over

    def end_turn(self) -> Data:
        return '{"type": "ForceEndpoint"}'

    def restart(self) -> None:
        self._over = -1

    def facts(self, message: Mapping[str, Any]) -> Iterable[EarFact]:
        match message["type"]:
            case "SpeechStarted":
                yield VoiceBegan()
            case "Turn":
                yield from self._turn(message)
            case "Error":
                code, text = message.get("error_code"), message.get("error")
                ASSEMBLYAI_ERRORS.check("ended the session", code, detail=text)
            case "Warning":
                code = str(message.get("warning_code", ""))
                log.warning("vendor_warning", vendor=ASSEMBLYAI.errors.vendor, code=code)

    def _number_of(self, turn: Mapping[str, Any]) -> int:
        """Return the number of a turn; of one without a number, that of the next."""
        number = count_of(turn.get("turn_order"))
        return self._over + 1 if number is None else number

    def _turn(self, turn: Mapping[str, Any]) -> Iterable[EarFact]:
        number = self._number_of(turn)
        if number <= self._over:
            return  # the end of the same turn again, with formatted words
        words = objects_of(turn.get("words"))
        sure = lowest_probability(word.get("confidence") for word in words)
        if turn.get("end_of_turn") is not True:
            # `transcript` has only the final words.
            text = " ".join(text_of(word.get("text")) for word in words) or text_of(
                turn.get("transcript")
            )
            yield WordsHeard(text, confidence=sure)
            return
        if self._formatted and turn.get("turn_is_formatted") is not True:
            return
        self._over = number
        yield TurnOver(
            text_of(turn.get("transcript")),
            sure,
            language=text_of(turn.get("language_code")),
            speaker=text_of(turn.get("speaker_label")),
            words=timed_words(words, "text", per_s=1000),
        )


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(1000 * seconds)
