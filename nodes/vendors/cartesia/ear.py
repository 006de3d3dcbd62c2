"""Cartesia's speech recogniser with turn detection (``/stt/turns/websocket``), by its SDK 4.2."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from bargein.bridge.validation.arguments import check_strings
from bargein.nodes.services import LineArguments, text_of
from bargein.nodes.services.vendor_ear import SAMPLE_RATE_HZ, PlainEarCodec, VendorEar
from bargein.nodes.speech import EarFact, PerhapsOver, TurnOver, VoiceBegan, WentOn, WordsHeard

from ._address import CARTESIA
from .errors import CARTESIA_ERRORS

__all__ = ["CartesiaEar"]


class CartesiaEar(VendorEar):
    """Hears with Cartesia's Ink, which detects turns itself.

    It reports the words of a whole turn, that the turn may be over, and that it went on, but no
    word times and no probabilities. The API has no message that ends a turn; we send a second of
    silence instead.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        model: str = "ink-2",
        keyterms: Sequence[str] = (),
        end_threshold: float | None = None,
        eager_end_threshold: float | None = None,
        end_timeout_s: float | None = None,
        **line: Unpack[LineArguments],
    ) -> None:
        """Configure the ear; nothing connects yet.

        Args:
            api_key: The key; ``None`` reads CARTESIA_API_KEY.
            model: The vendor's name of the model.
            keyterms: Words that callers are likely to use, for the vendor's model.
            end_threshold: A turn is over when more speech is less likely than this, 0.05 to 0.5;
                ``None`` for the vendor's default.
            eager_end_threshold: A turn may be over when more speech is less likely than this, 0.3
                to 0.6; ``None`` for the vendor's default.
            end_timeout_s: Silence that ends any turn, 0.64 to 11.2 s; ``None`` for the vendor's
                default.
            line: Where and how it connects, as `LineArguments` says.

        Raises:
            TypeError: `keyterms` is not a list of strings, or `headers` or `query` is no mapping.
            ValueError: There is no key, or an address or a header that cannot be used.
        """
        check_strings("CartesiaEar(keyterms=)", keyterms)
        asked = {
            "model": model,
            "encoding": "pcm_s16le",
            "sample_rate": SAMPLE_RATE_HZ,
            "turn_end_threshold": end_threshold,
            "turn_eager_end_threshold": eager_end_threshold,
            "turn_end_timeout_ms": None if end_timeout_s is None else round(1000 * end_timeout_s),
            "keyterm": tuple(keyterms),
        }
        address = CARTESIA.at(type(self).__name__, api_key, line).address(
            "/stt/turns/websocket", asked, farewell='{"type": "close"}'
        )
        super().__init__(address, InkCodec, limits=line.get("limits"), dial=line.get("dial"))


class InkCodec(PlainEarCodec):
    """The messages of ``/stt/turns/websocket``."""

    piece_s = 0.06

    def __init__(self) -> None:
        self._ended: str | None = None  # the words of the previous turn, until another begins

    def restart(self) -> None:
        """Forget the previous turn; each message holds the whole turn."""
        self._ended = None

    def facts(self, message: Mapping[str, Any]) -> Iterable[EarFact]:
        text = text_of(message.get("transcript"))
        if self._ended is not None and text and self._ended.startswith(text):
            return  # a late message of a turn that is over
        match message["type"]:
            case "turn.start":
                self._ended = None
                yield VoiceBegan()
            case "turn.update":
                yield WordsHeard(text)
            case "turn.eager_end":
                yield WordsHeard(text)
                yield PerhapsOver()
            case "turn.resume":
                yield WentOn()
            case "turn.end":
                self._ended = text
                yield TurnOver(text)
            case "error":
                CARTESIA_ERRORS.check(
                    "rejected the audio",
                    message.get("error_code"),
                    message.get("title"),
                    status=message.get("status_code"),
                    detail=message.get("message") or message.get("error"),
                )
