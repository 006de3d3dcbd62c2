"""Deepgram's voices: Flux TTS (``/v2/speak``) and Aura (``/v1/speak``).

By the vendor's SDK 7.17 and public documentation. Audio names no utterance, so each utterance needs
its own socket. The vendor answers a flush after its audio: in ``/v1`` with ``Flushed``, in ``/v2``
with ``SpeechMetadata`` (there ``Flushed`` is only an echo).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from bargein.nodes.services import LineArguments, VendorAddress
from bargein.nodes.services.vendor_voice import Piece, VendorVoice, VoiceCodec
from bargein.nodes.speech import TextSaid, VoiceStyle
from bargein.routes.logs import get_logger

from ._address import DEEPGRAM
from .errors import DEEPGRAM_ERRORS

__all__ = ["DeepgramVoice"]

log = get_logger()

SAMPLE_RATE_HZ = 24_000

AURA_FLUSHES_A_MINUTE = 20
"""How often ``/v1/speak`` may be flushed on a line, from the vendor's page on Flush."""


class DeepgramVoice(VendorVoice):
    """Speaks with Deepgram; each clause is a turn at the vendor.

    A voice named ``flux-...`` uses ``/v2/speak``; all others use ``/v1/speak``, which allows 20
    flushes a minute on a socket.
    """

    def __init__(
        self,
        voice: str = "flux-haley-en",
        *,
        api_key: str | None = None,
        speed: float | None = None,
        **line: Unpack[LineArguments],
    ) -> None:
        """Configure the voice; nothing connects yet.

        Args:
            voice: The vendor's name of a model, which is one voice in one language; a style may
                name another one of the same family.
            api_key: The key; ``None`` reads DEEPGRAM_API_KEY.
            speed: Factor on the usual speed; not every voice supports it. ``None`` for the vendor's
                default.
            line: Where and how it connects, as `LineArguments` says.

        Raises:
            ValueError: There is no key, or an address or a header that cannot be used.
        """
        at = DEEPGRAM.at(type(self).__name__, api_key, line)

        def address_of(style: VoiceStyle) -> VendorAddress:
            model = style.voice or voice
            asked = {
                "model": model,
                "encoding": "linear16",
                "sample_rate": SAMPLE_RATE_HZ,
                "speed": speed if style.speed is None else style.speed,
            }
            path = "/v2/speak" if _is_flux(model) else "/v1/speak"
            return at.address(path, asked, farewell='{"type": "Close"}')

        super().__init__(
            address_of,
            lambda context, style: (
                FluxTTSCodec() if _is_flux(style.voice or voice) else AuraCodec()
            ),
            None,
            sample_rate_hz=SAMPLE_RATE_HZ,
            times="none",
            limits=line.get("limits"),
            most_flushes_a_minute=None if _is_flux(voice) else AURA_FLUSHES_A_MINUTE,
            dial=line.get("dial"),
        )


def _is_flux(model: str) -> bool:
    return model.startswith("flux-")


class AuraCodec(VoiceCodec):
    """The messages of ``/v1/speak``."""

    CANCEL = '{"type": "Clear"}'
    FLUSH_ANSWER = "Flushed"
    FLUSH_ID = "sequence_id"

    def __init__(self) -> None:
        self._is_open = False
        self._answered: object = None  # the id of the newest answer, which may come twice

    def text(self, text: str) -> Sequence[str]:
        self._is_open = True
        return (json.dumps({"type": "Speak", "text": text}),)

    def flush(self) -> Sequence[str]:
        return ('{"type": "Flush"}',)

    def cancel(self) -> Sequence[str]:
        return (self.CANCEL,) if self._is_open else ()

    def pieces(self, message: Mapping[str, Any]) -> Iterable[Piece]:
        kind = message["type"]
        if kind in ("Warning", "Error"):
            _refuse(message, is_fatal=kind == "Error" or self._is_fatal(message))
        elif kind == self.FLUSH_ANSWER:
            number = message.get(self.FLUSH_ID)
            if number is None or number != self._answered:
                self._answered = number
                yield TextSaid()
        elif kind == "SpeechStarted" and message.get(self.FLUSH_ID) == self._answered:
            self._answered = None  # a server that gives every turn the same id

    def _is_fatal(self, warning: Mapping[str, Any]) -> bool:
        return "flush" in _detail(warning).lower()  # a flush that is never answered


class FluxTTSCodec(AuraCodec):
    """The messages of ``/v2/speak``."""

    CANCEL = '{"type": "Interrupt"}'
    FLUSH_ANSWER = "SpeechMetadata"
    FLUSH_ID = "speech_id"

    def _is_fatal(self, warning: Mapping[str, Any]) -> bool:
        return False


def _detail(message: Mapping[str, Any]) -> str:
    return str(message.get("description") or message.get("message") or "")


def _refuse(message: Mapping[str, Any], *, is_fatal: bool) -> None:
    """Raise an error that ends the utterance; log any other warning.

    Raises:
        VendorError: The vendor gave up the utterance.
    """
    if is_fatal:
        DEEPGRAM_ERRORS.check("rejected the text", message.get("code"), detail=_detail(message))
    else:
        log.warning(
            "vendor_warning", vendor=DEEPGRAM_ERRORS.vendor, code=str(message.get("code") or "")
        )
