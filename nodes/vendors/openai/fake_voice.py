"""A fake of OpenAI's voice: one request per clause, whose audio streams as it is synthesised.

By the types of the vendor's SDK 3.54.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bargein.nodes.fakes import (
    CHAR_S,
    SPEED,
    FakeChat,
    FaultKind,
    FaultStage,
    StreamedEvent,
    pcm_of,
)
from bargein.nodes.speech import SpeechExtraError

from .fake_chat import refused

__all__ = ["FakeOpenAIVoice"]

FIELDS = ("model", "voice", "input")


class FakeOpenAIVoice(FakeChat):
    """``/audio/speech`` with ``response_format="pcm"``, in pieces that may end in mid-sample.

    Its answer is only audio, so it can neither report an error in it nor contain garbage.
    """

    faults: ClassVar[frozenset[FaultKind]] = FakeChat.faults - {"error", "garbage"}
    error: ClassVar[Mapping[str, Any]] = {
        "error": {"message": "no", "type": "server_error", "param": None, "code": None}
    }
    extra = "openai"
    missing_extra = SpeechExtraError
    content_type = "audio/pcm"
    closes_whole = False
    key = "^(authorization: bearer |api-key: )"
    no_key = refused("Missing bearer authentication in header")
    path = "/audio/speech"
    no_path = refused("Invalid URL")

    def refusal_of(self, body: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]] | None:
        """Refuse a request with a missing field or an empty text."""
        for field in FIELDS:
            if not str(body.get(field) or "").strip():
                return 400, refused(f"{field} is missing", field)
        return None

    def words_of(self, body: Mapping[str, Any]) -> Sequence[str]:
        return str(body["input"]).split()

    def events(self, words: Sequence[str]) -> Sequence[tuple[StreamedEvent, FaultStage]]:
        """Return the audio of each word in two pieces."""
        pieces: list[bytes] = []
        for word in words:
            pcm = pcm_of(f"{word} ")
            pieces += [pcm[:501], pcm[501:]]
        last = len(pieces) - 1
        return [
            (piece, "first" if n == 0 else "last" if n == last else "middle")
            for n, piece in enumerate(pieces)
        ]

    def made_s(self, event: StreamedEvent) -> float:
        """Return how long a piece takes to synthesise, in seconds."""
        return len(event) / len(pcm_of("a")) * CHAR_S / SPEED
