"""ElevenLabs' voice (``multi-stream-input``), by the types of the vendor's SDK 2.78."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack
from urllib.parse import quote

from bargein.bridge.events import WordTiming
from bargein.bridge.playout.word_alignment import SaidWords
from bargein.bridge.validation.texts import has_words
from bargein.nodes.services import LineArguments, VendorAddress
from bargein.nodes.services.vendor_voice import ContextLimit, Piece, VendorVoice
from bargein.nodes.speech import SpeechPiece, TextSaid, VoiceStyle
from bargein.routes.logs import get_logger

from ._address import ELEVENLABS
from .errors import ELEVENLABS_ERRORS

__all__ = ["ElevenLabsVoice"]

log = get_logger()

SAMPLE_RATE_HZ = 24_000

INACTIVE_S = 180
"""How long the vendor keeps a context without text, in seconds: the longest it allows."""

QUIET_S = 1.5
"""A flush whose last word the vendor does not report counts as answered after this silence behind
its audio, in seconds: audio comes many times as fast as it is heard."""

LIMIT = ContextLimit(5, lambda message: message.get("isFinal") is True, INACTIVE_S)
"""A sixth context would make the vendor close the socket, with all utterances on it."""


class ElevenLabsVoice(VendorVoice):
    """Speaks with ElevenLabs, and derives the time of each word from those of its characters.

    The vendor allows five contexts at once on a socket, so a sixth gets another socket. A cancelled
    context counts until the vendor has ended it.
    """

    def __init__(
        self,
        voice: str,
        *,
        api_key: str | None = None,
        model: str = "eleven_flash_v2_5",
        language: str | None = None,
        **line: Unpack[LineArguments],
    ) -> None:
        """Configure the voice; nothing connects yet.

        Args:
            voice: The vendor's id of a voice. The address holds the voice and the language, so
                another voice or language uses a socket of its own.
            api_key: The key; ``None`` reads ELEVENLABS_API_KEY.
            model: The vendor's name of the model.
            language: An ISO 639 code; ``None`` for the vendor's default.
            line: Where and how it connects, as `LineArguments` says.

        Raises:
            ValueError: There is no key, or an address or a header that cannot be used.
        """
        at = ELEVENLABS.at(type(self).__name__, api_key, line)

        def address_of(style: VoiceStyle) -> VendorAddress:
            asked = {
                "model_id": model,
                "language_code": style.language or language,
                "output_format": f"pcm_{SAMPLE_RATE_HZ}",
                "sync_alignment": "true",
                "inactivity_timeout": INACTIVE_S,
            }
            voice_id = quote(style.voice or voice, safe="")
            path = f"/v1/text-to-speech/{voice_id}/multi-stream-input"
            return at.address(path, asked, farewell='{"close_socket": true}')

        super().__init__(
            address_of,
            lambda context, style: MultiContextCodec(context, speed=style.speed),
            lambda message: message.get("contextId"),
            sample_rate_hz=SAMPLE_RATE_HZ,
            times="words",
            limits=line.get("limits"),
            limit=LIMIT,
            quiet_s=QUIET_S,
            dial=line.get("dial"),
        )


class MultiContextCodec:
    """The messages of one context of ``multi-stream-input``.

    The vendor does not answer flushes: a clause is complete when its last word was said, in
    whatever spelling, or when the vendor falls silent.
    """

    def __init__(self, context: str, *, speed: float | None) -> None:
        self._context = context
        self._speed = speed
        self._is_open = False
        self._text = ""  # since the last flush
        self._flushes: list[str] = []  # the text of each that has no answer
        self._said = SaidWords()  # of the first of them
        self._word, self._word_s = "", (0.0, 0.0)
        self._audio_s = 0.0

    def text(self, text: str) -> Sequence[str]:
        """Return the text, after a message that opens the context if it is not open."""
        self._text += text
        said = json.dumps({"text": text.rstrip() + " ", "context_id": self._context})
        if self._is_open:
            return (said,)
        self._is_open = True
        opening: dict[str, Any] = {"text": " ", "context_id": self._context}
        if self._speed is not None:
            opening["voice_settings"] = {"speed": self._speed}
        return (json.dumps(opening), said)

    def flush(self) -> Sequence[str]:
        self._flushes.append(self._text)
        self._text = ""
        return (json.dumps({"context_id": self._context, "flush": True}),)

    def end(self) -> Sequence[str]:
        """Return the close of the context; flushed text is still said."""
        return (json.dumps({"context_id": self._context, "close_context": True}),)

    def cancel(self) -> Sequence[str]:
        """Return the close of the context; late audio is dropped by the context's name."""
        return self.end() if self._is_open else ()

    def pieces(self, message: Mapping[str, Any]) -> Iterable[Piece]:
        if message.get("error") or message.get("code"):
            ELEVENLABS_ERRORS.check(
                "rejected the text",
                message.get("error"),
                message.get("code"),
                detail=message.get("message"),
            )
        if message.get("audio"):
            pcm = base64.b64decode(message["audio"])
            words = self._words_or_none(message.get("alignment"))
            self._said.add(word.text for word in words)
            count = self._said_flushes(self._word)
            if count > self._said_flushes():  # the word in progress is the last one
                words = (*words, *self._end_word())
            yield SpeechPiece(pcm, words)
            self._audio_s += len(pcm) / 2 / SAMPLE_RATE_HZ
            yield from self._answers(count)
        if message.get("isFinal") is True:
            yield from self._answers(len(self._flushes))
            yield None

    def _said_flushes(self, *begun: str) -> int:
        """Return of how many flushes the last word was said, counting a word that was begun."""
        text = ""
        for count, clause in enumerate(self._flushes):
            text += clause
            if has_words(text[self._said.length_in(text, *begun) :]):
                return count
        return len(self._flushes)

    def _answers(self, count: int) -> Iterable[TextSaid]:
        """Answer some flushes, whose audio came together."""
        del self._flushes[:count]
        if count:
            self._said.clear()
        for number in range(count):
            yield TextSaid(joined=number > 0)

    def _words_or_none(self, alignment: object) -> tuple[WordTiming, ...]:
        """Return the words that end in this audio; none if the alignment makes no sense."""
        if not isinstance(alignment, Mapping):
            return ()
        try:
            return self._words(alignment)
        except (TypeError, ValueError) as error:
            kind = type(error).__name__
            log.warning("vendor_alignment_unreadable", vendor=ELEVENLABS_ERRORS.vendor, error=kind)
            return ()

    def _words(self, alignment: Mapping[str, Any]) -> tuple[WordTiming, ...]:
        """Return the words that end in this audio, with times from its first sample."""
        found: list[WordTiming] = []
        times = zip(
            alignment.get("chars") or (),
            alignment.get("charStartTimesMs") or (),
            alignment.get("charDurationsMs") or (),
            strict=True,
        )
        for char, start_ms, lasts_ms in times:
            begins_s = self._audio_s + start_ms / 1000
            if not str(char).strip():
                found.extend(self._end_word())
                continue
            since_s = self._word_s[0] if self._word else begins_s
            self._word, self._word_s = self._word + char, (since_s, begins_s + lasts_ms / 1000)
        return tuple(found)

    def _end_word(self) -> Iterable[WordTiming]:
        if self._word:
            start_s, end_s = self._word_s
            yield WordTiming(self._word, start_s - self._audio_s, end_s - self._audio_s)
            self._word = ""
