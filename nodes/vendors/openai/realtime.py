"""OpenAI's Realtime API and compatible servers.

By the types of the vendor's SDK 3.54 (GA names) and public documentation. It also understands the
beta's names for speech and text, which compatible servers still use.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Literal, Unpack

from bargein.bridge.validation.foreign_data import read_json
from bargein.nodes.llm import ToolCallRequest, Usage
from bargein.nodes.realtime import (
    AskRefused,
    AudioCommitted,
    CallAsked,
    ItemAdded,
    RealtimeFact,
    ResponseBegan,
    ResponseOver,
    SpeechGiven,
    TextGiven,
)
from bargein.nodes.services import (
    LineArguments,
    SessionLimits,
    VendorError,
    WholeCharacters,
    count_of,
    object_of,
    text_of,
    without_secrets,
)
from bargein.nodes.speech import EarFact, EvenResampler

from ._address import OPENAI
from ._turns import OpenAITurns, turn_detection
from .ear import COMMIT, CONFIGURE, append, raise_if_fatal
from .errors import OPENAI_ERRORS

__all__ = ["OpenAIRealtime"]

RATE_HZ = 24_000
"""The only PCM sample rate that the vendor accepts and sends."""

SPEECH = ("response.output_audio.delta", "response.audio.delta")
TEXT = (
    "response.output_audio_transcript.delta",
    "response.output_text.delta",
    "response.audio_transcript.delta",
    "response.text.delta",
)

BUSY = "conversation_already_has_active_response"
"""The code for a request that came before the response in front of it was over."""

WORN = {"max_output_tokens": "length"}
"""Maps the reason of an incomplete response to a finish reason of `Usage`."""


class OpenAIRealtime:
    """A speech-to-speech model of OpenAI for a `RealtimeNode`, which opens the connections."""

    def __init__(
        self,
        model: str = "gpt-realtime-2",
        *,
        api_key: str | None = None,
        voice: str = "marin",
        language: str | None = None,
        transcription: str = "gpt-transcribe",
        turns: Literal["semantic", "silence"] = "semantic",
        eagerness: Literal["low", "medium", "high"] | None = None,
        silence_s: float | None = None,
        threshold: float | None = None,
        noise_reduction: Literal["near_field", "far_field"] | None = None,
        speed: float | None = None,
        max_output_tokens: int | None = None,
        options: Mapping[str, Any] | None = None,
        **line: Unpack[LineArguments],
    ) -> None:
        """Configure the model; nothing connects yet.

        Args:
            model: The vendor's name of the model.
            api_key: The key; ``None`` reads OPENAI_API_KEY.
            voice: The vendor's name of a voice; it cannot change during a call.
            language: The caller's language for the transcript, as an ISO 639-1 code; ``None`` if
                unknown.
            transcription: The model that transcribes what the caller says.
            turns: How the vendor detects the end of a turn: by a model or by silence.
            eagerness: For ``"semantic"``: the longest pause is 8, 4 or 2 s; ``None`` for the
                vendor's default.
            silence_s: For ``"silence"``: how long, in seconds; ``None`` for the vendor's default,
                0.5 s.
            threshold: For ``"silence"``: how loud speech has to be, 0 to 1; ``None`` for 0.5.
            noise_reduction: Which kind of microphone the vendor filters for; ``None`` filters
                nothing.
            speed: Factor on the usual speed, 0.25 to 1.5; ``None`` for 1.
            max_output_tokens: The longest response, in tokens; ``None`` for the model's own limit.
            options: Further fields of the session (``{"reasoning": {"effort": "low"}}``).
            line: Where and how it connects, as `LineArguments` says.

        Raises:
            ValueError: There is no key, an address or a header that cannot be used, or a setting
                that does not fit `turns`.
            SpeechExtraError: soxr is not installed (extra ``openai``).
        """
        EvenResampler(16_000, RATE_HZ)  # raises if soxr is missing
        self.model = model
        self.address = OPENAI.at(type(self).__name__, api_key, line).address(
            "/realtime", {"model": model}
        )
        self.limits = line.get("limits") or SessionLimits()
        self.dial = line.get("dial")
        detection = turn_detection(
            turns, silence_s=silence_s, threshold=threshold, eagerness=eagerness
        )
        pcm = {"type": "audio/pcm", "rate": RATE_HZ}
        recogniser = {"model": transcription} | ({"language": language} if language else {})
        heard: dict[str, Any] = {"format": pcm, "transcription": recogniser}
        if noise_reduction is not None:
            heard["noise_reduction"] = {"type": noise_reduction}
        said = {"format": pcm, "voice": voice} | ({} if speed is None else {"speed": speed})
        self._detection = {**(detection or {}), "create_response": False}
        self._detection["interrupt_response"] = False
        self._session: dict[str, Any] = {
            "type": "realtime",
            "audio": {"input": heard, "output": said},
            **({} if max_output_tokens is None else {"max_output_tokens": max_output_tokens}),
            **(options or {}),
        }

    def new_codec(self) -> OpenAIRealtimeCodec:
        """Return the codec of one call."""
        return OpenAIRealtimeCodec(self._session, self._detection)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.model!r} at {without_secrets(self.address.url)}>"


class OpenAIRealtimeCodec:
    """The messages of one session."""

    input_rate_hz = output_rate_hz = RATE_HZ

    def __init__(self, session: Mapping[str, Any], detection: Mapping[str, Any]) -> None:
        self._session = session
        self._detection = detection
        self._turns = OpenAITurns()
        self._text_of = ("", WholeCharacters())  # the newest item, and its text so far
        self._numbers = count(1)

    # --- to the vendor --------------------------------------------------------------------------

    def configure(
        self,
        instructions: str,
        tools: Sequence[Mapping[str, Any]],
        *,
        detects: bool,
        speaks: bool,
    ) -> Sequence[str]:
        audio = self._session["audio"]
        heard = {**audio["input"], "turn_detection": dict(self._detection) if detects else None}
        if not detects:
            heard.pop("transcription")  # our ears transcribe the words
        session = {
            **self._session,
            "instructions": instructions,
            "tools": [{"type": "function", **tool["function"]} for tool in tools],
            "output_modalities": ["audio" if speaks else "text"],
            "audio": {**audio, "input": heard},
        }
        update = {"type": "session.update", "event_id": CONFIGURE, "session": session}
        return (json.dumps(update),)

    def audio(self, pcm: bytes) -> str:
        return append(pcm)

    def commit(self) -> str:
        return COMMIT

    def clear(self) -> str:
        return '{"type": "input_audio_buffer.clear"}'

    def add(self, chat: Sequence[Mapping[str, Any]], after: str = "") -> Sequence[str]:
        """Return the messages that create the items of a chat, each after the one before."""
        said: list[str] = []
        for item in (item for message in chat for item in _items(message)):
            told: dict[str, Any] = {"type": "conversation.item.create", "item": item}
            if after:
                told["previous_item_id"] = after
                after = item["id"] = f"told_{next(self._numbers)}"
            said.append(json.dumps(told))
        return said

    def respond(self, ask: str) -> str:
        """Return the message that requests a response; its metadata and id identify the request."""
        response = {"metadata": {"ask": ask}}
        return json.dumps({"type": "response.create", "event_id": ask, "response": response})

    def cancel(self, response: str) -> str:
        return json.dumps({"type": "response.cancel", "response_id": response})

    def truncate(self, item: str, heard_ms: int) -> str:
        told = {"item_id": item, "content_index": 0, "audio_end_ms": heard_ms}
        return json.dumps({"type": "conversation.item.truncate", **told})

    def delete(self, item: str) -> str:
        return json.dumps({"type": "conversation.item.delete", "item_id": item})

    # --- from the vendor ------------------------------------------------------------------------

    def restart(self) -> None:
        self._turns.restart()

    def facts(self, message: Mapping[str, Any]) -> Iterable[RealtimeFact | EarFact]:
        kind = str(message["type"])
        if kind in SPEECH:
            pcm = base64.b64decode(message["delta"])
            yield SpeechGiven(str(message["response_id"]), str(message["item_id"]), pcm)
        elif kind in TEXT:
            response, item = str(message["response_id"]), str(message["item_id"])
            text = self._characters_of(item).add(text_of(message.get("delta")))
            if text:
                yield TextGiven(response, item, text)
        elif kind == "response.created":
            asked = object_of(message["response"].get("metadata"))
            yield ResponseBegan(str(message["response"]["id"]), str(asked.get("ask") or ""))
        elif kind in ("response.output_item.added", "response.output_item.done"):
            yield from self._item(message, is_done=kind.endswith("done"))
        elif kind == "response.done":
            yield _over(message["response"])
        elif kind == "error":
            yield from self._error(message["error"])
        else:
            yield from self._turns.facts(message)
            if kind == "input_audio_buffer.committed":
                after = str(message.get("previous_item_id") or "root")
                yield AudioCommitted(str(message["item_id"]), after)

    def _characters_of(self, item: str) -> WholeCharacters:
        """Return what joins the halves of characters in the newest item's text."""
        if self._text_of[0] != item:
            self._text_of = (item, WholeCharacters())
        return self._text_of[1]

    def _item(self, message: Mapping[str, Any], *, is_done: bool) -> Iterable[RealtimeFact]:
        response, item = str(message["response_id"]), message["item"]
        is_call = item["type"] == "function_call"
        if not is_done:
            yield ItemAdded(response, str(item["id"]), str(item["name"]) if is_call else "")
        elif is_call and item.get("status") != "incomplete":
            raw = str(item["arguments"])
            request = ToolCallRequest(str(item["call_id"]), str(item["name"]), _object(raw), raw)
            yield CallAsked(response, str(item["id"]), request)

    def _error(self, error: Mapping[str, Any]) -> Iterable[RealtimeFact]:
        ask = str(error.get("event_id") or "")
        if ask and ask != CONFIGURE:
            refusal = _failure(error, "refused to respond")
            yield AskRefused(ask, refusal, passes=refusal.retryable or error.get("code") == BUSY)
        else:
            raise_if_fatal(error)


def _items(message: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Yield the items for a message of a chat."""
    text = str(message.get("content") or "")
    if message["role"] == "tool":
        call_id = message["tool_call_id"]
        yield {"type": "function_call_output", "call_id": call_id, "output": text}
        return
    if text:
        part = "output_text" if message["role"] == "assistant" else "input_text"
        content = [{"type": part, "text": text}]
        yield {"type": "message", "role": message["role"], "content": content}
    for call in message.get("tool_calls") or ():
        yield {"type": "function_call", "call_id": call["id"], **call["function"]}


def _over(response: Mapping[str, Any]) -> ResponseOver:
    status, details = str(response.get("status") or ""), object_of(response.get("status_details"))
    used = object_of(response.get("usage"))
    reason = str(details.get("reason") or status)
    usage = Usage(
        input_tokens=count_of(used.get("input_tokens")),
        output_tokens=count_of(used.get("output_tokens")),
        cached_tokens=count_of(object_of(used.get("input_token_details")).get("cached_tokens")),
        finish_reason="stop" if status == "completed" else WORN.get(reason, reason),
    )
    error = _failure(object_of(details.get("error")), "the response failed")
    return ResponseOver(str(response["id"]), usage, error if status == "failed" else None)


def _failure(error: Mapping[str, Any], problem: str) -> VendorError:
    codes = (error.get("code"), error.get("type"))
    return OPENAI_ERRORS.failure(problem, *codes, detail=error.get("message"))


def _object(raw: str) -> Mapping[str, Any] | None:
    """Parse a JSON object; return None for anything else."""
    try:
        value = read_json(raw or "{}")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
