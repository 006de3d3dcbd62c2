"""A fake of an endpoint that transcribes utterances, by the types of OpenAI's SDK 3.54."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bargein.nodes.fakes import FakeChat, Fault, FaultKind, FaultStage, StreamedEvent
from bargein.nodes.speech import SpeechExtraError

from .fake_chat import refused

__all__ = ["FakeTranscription"]

WAV_HEAD_BYTES = 44


class FakeTranscription(FakeChat):
    """``/audio/transcriptions``: hears the words of its script in any sound.

    It takes a form with a WAV file, and answers with JSON, whole: so what it sends is neither
    repeated nor in another order.

    Attributes:
        requests: The fields of the last 50 requests, ``file`` as bytes.
    """

    faults: ClassVar[frozenset[FaultKind]] = FakeChat.faults - {"error", "duplicate", "reorder"}
    error: ClassVar[Mapping[str, Any]] = {
        "error": {"message": "no", "type": "server_error", "param": None, "code": None}
    }
    extra = "openai"
    missing_extra = SpeechExtraError
    content_type = "application/json"
    key = "^(authorization: bearer |api-key: )"
    no_key = refused("Missing bearer authentication in header")
    path = "/audio/transcriptions"
    no_path = refused("Invalid URL")

    def __init__(
        self,
        text: str = "a large latte please",
        *,
        needs_key: bool = True,
        formats: Sequence[str] = ("json", "verbose_json"),
        fault: Fault | None = None,
    ) -> None:
        """Set the script.

        Args:
            text: What is heard in any sound.
            needs_key: Whether a request without a key is refused.
            formats: The formats that the model can answer in.
            fault: The fault to play; ``None`` for none.

        Raises:
            ValueError: This fake cannot play that fault.
        """
        super().__init__(*text.split(), fault=fault)
        self._needs_key = needs_key
        self._formats = formats

    def parsed(self, head: str, body: bytes) -> dict[str, Any]:
        """Return the fields of a form (RFC 7578)."""
        boundary = re.search(r"boundary=\"?([^\";\r\n]+)", head)
        if boundary is None:
            return {}
        fields: dict[str, Any] = {}
        for part in body.split(b"--" + boundary[1].encode())[1:-1]:
            about, _, value = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
            name = re.search(rb'[; ]name="([^"]+)"', about)
            if name is not None:
                value = value.removesuffix(b"\r\n")
                is_file = b"filename=" in about
                fields[name[1].decode()] = value if is_file else value.decode()
        return fields

    def refusal_without_key(self, head: str) -> tuple[int, Any] | None:
        return super().refusal_without_key(head) if self._needs_key else None

    def refusal_of(self, body: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]] | None:
        """Refuse a request without a model or a WAV file, or for a format that the model lacks."""
        if not body.get("model"):
            return 400, refused("model is missing")
        file = body.get("file")
        if not isinstance(file, bytes) or not (file[:4] == b"RIFF" and file[8:12] == b"WAVE"):
            return 400, refused("Audio file might be corrupted or unsupported")
        if _format(body) not in self._formats:
            return 400, refused(f"response_format {_format(body)!r} is not compatible with model")
        return None

    def words_of(self, body: Mapping[str, Any]) -> Sequence[str]:
        """Return the format of the answer, and the words; none for silence."""
        is_silent = not body["file"][WAV_HEAD_BYTES:].strip(b"\0")
        return [_format(body), *(() if is_silent else self._words)]

    def events(self, words: Sequence[str]) -> Sequence[tuple[StreamedEvent, FaultStage]]:
        """Return the transcript in three pieces."""
        text = " ".join(words[1:])
        told: dict[str, Any] = {"text": text}
        if "verbose_json" in words[:1]:
            told |= {"task": "transcribe", "language": "english", "duration": 1.0}
            told["segments"] = [_segment(text)] if text else []
        data = json.dumps(told).encode()
        third = len(data) // 3
        return (
            (data[:third], "first"),
            (data[third : 2 * third], "middle"),
            (data[2 * third :], "last"),
        )


def _format(body: Mapping[str, Any]) -> str:
    return str(body.get("response_format", "json"))


def _segment(text: str) -> Mapping[str, Any]:
    return {
        **{"id": 0, "seek": 0, "start": 0.0, "end": 1.0, "text": f" {text}", "tokens": [1]},
        **{"temperature": 0.0, "avg_logprob": -0.2, "compression_ratio": 1.0},
        "no_speech_prob": 0.01,
    }
