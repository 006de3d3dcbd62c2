"""Validates messages of the native protocol: bytes and text in, typed messages out, no I/O.

Only this module validates what the other side sends.  It ignores unknown fields, so that newer
peers are understood; anything else that is wrong raises ``ProtocolViolationError``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from pydantic import ValidationError
from pydantic_core import from_json

from ._call_messages import (
    AGENT_AUDIO_HEADER,
    AgentFrame,
    CallerAudio,
    ClientMessage,
    ServerMessage,
)
from ._connection_messages import INPUT_RATE_HZ
from ._message_base import NativeMessage, ProtocolViolationError

BYTES_PER_INPUT_MS = INPUT_RATE_HZ * 2 // 1000
MAX_INPUT_BYTES = 100 * BYTES_PER_INPUT_MS
"""Largest binary frame of a client, in bytes: 100 ms of PCM16 at 16 kHz."""


def decode_client(data: str | bytes, *, max_bytes: int = 65_536) -> ClientMessage:
    """Parse a message of a client.

    Args:
        data: A WebSocket message, text or binary.
        max_bytes: Longest message that is accepted, in bytes.

    Raises:
        ProtocolViolationError: It is no message of the protocol.  Nothing else is raised, whatever
            the bytes are.
    """
    if isinstance(data, str):
        # A character has at most 4 bytes in UTF-8; encoding again just to count them would cost
        # too much.
        if len(data) > max_bytes:
            raise ProtocolViolationError("too_large", f"a message has at most {max_bytes} bytes")
        return _parse(data, _CLIENT_MODELS)  # type: ignore[return-value]  # by the table
    if len(data) > max_bytes:
        raise ProtocolViolationError("too_large", f"a message has at most {max_bytes} bytes")
    if not BYTES_PER_INPUT_MS <= len(data) <= MAX_INPUT_BYTES or len(data) % 2:
        raise ProtocolViolationError(
            "bad_audio",
            f"a frame of audio has an even number of bytes from {BYTES_PER_INPUT_MS} to "
            f"{MAX_INPUT_BYTES} (PCM16 mono {INPUT_RATE_HZ} Hz, 1 to 100 ms), not {len(data)}",
        )
    return CallerAudio(data)


def decode_server(data: str | bytes) -> ServerMessage:
    """Parse a message of a server.

    Args:
        data: A WebSocket message, text or binary.

    Raises:
        ProtocolViolationError: It is no message of the protocol.  Nothing else is raised, whatever
            the bytes are.
    """
    if isinstance(data, str):
        return _parse(data, _SERVER_MODELS)  # type: ignore[return-value]  # by the table
    if len(data) < AGENT_AUDIO_HEADER.size or len(data) % 2:
        raise ProtocolViolationError(
            "bad_audio", f"4 bytes and then PCM16 were expected, not {len(data)} bytes"
        )
    return AgentFrame(AGENT_AUDIO_HEADER.unpack_from(data)[0], data[AGENT_AUDIO_HEADER.size :])


def _by_type(messages: object) -> dict[str, type[NativeMessage]]:
    """Return the models of a union by their tags; audio has none."""
    models = [model for model in get_args(messages) if issubclass(model, NativeMessage)]
    return {tag: m for m in models for tag in get_args(m.model_fields["type"].annotation)}


_CLIENT_MODELS = _by_type(ClientMessage)
_SERVER_MODELS = _by_type(ServerMessage)


def _parse(text: str, models: Mapping[str, type[NativeMessage]]) -> NativeMessage:
    try:
        fields = from_json(text, allow_inf_nan=False)
    except (ValueError, RecursionError) as error:
        raise ProtocolViolationError("bad_json", "the text is not JSON") from error
    if not isinstance(fields, dict):
        raise ProtocolViolationError("bad_message", "a message is a JSON object")
    request = _request_of(fields)
    tag = fields.get("type")
    model = models.get(tag) if isinstance(tag, str) else None
    if model is None:
        shown = tag[:40] if isinstance(tag, str) else tag if tag is None else type(tag).__name__
        raise ProtocolViolationError(
            "unknown_type", f"type {shown!r} is none of {', '.join(models)}", request
        )
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "message"
        wrong = first["input"]
        # The name of a verb or a key is none of what people said; a sentence in its place may be.
        is_name = first["type"] == "literal_error" and isinstance(wrong, str) and len(wrong) <= 40
        shown = f", not {wrong!r}" if is_name and wrong.isidentifier() else ""
        raise ProtocolViolationError(
            "bad_message", f"{tag}: {where}: {first['msg']}{shown}", request
        ) from error


def _request_of(fields: Mapping[str, object]) -> int | str | None:
    request = fields.get("request")
    if isinstance(request, str):
        return request[:64]
    if isinstance(request, int) and not isinstance(request, bool) and abs(request) < 2**53:
        return request
    return None
