"""Reads the errors that endpoints report in their own words, with a status or behind HTTP 200.

Shapes: ``{"error": {...}}`` and ``{"error": "..."}`` (OpenAI and most), ``{"object": "error",
"message": ...}`` (older vLLM, Mistral), ``{"type": "error", "error": {...}}`` (Anthropic),
``{"x_groq": {"error": ...}}`` (Groq), ``[{"error": {...}}]`` (Google), ``{"detail": ...}``
(FastAPI servers).  The codes are an HTTP status, as a number or a text, or a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._errors import ChatModelError, safe_word
from ._json_fields import count_of, object_of, text_of

_PASSING_WORDS = (
    "api_error",
    "capacity",
    "exhausted",
    "internal",
    "overloaded",
    "rate_limit",
    "server_error",
    "service_unavailable",
    "timeout",
    "too_many_requests",
    "unavailable",
)
_FINAL_WORDS = ("insufficient_quota", "billing", "invalid_request", "context_length")
"""These go before the passing ones, and before a status of 429: waiting does not help."""
_RETRYABLE_STATUS = frozenset({408, 409, 429})


def retryable_status(status: int) -> bool:
    """Return whether a request refused with this HTTP status may succeed when sent again."""
    return status in _RETRYABLE_STATUS or status >= 500


def error_in(message: Mapping[str, Any]) -> object | None:
    """Return the error that a message of a stream reports; ``None`` if it reports none."""
    if message.get("error"):
        error: object = message["error"]
        return error
    if "error" in (message.get("object"), message.get("type")):
        return message
    return object_of(message.get("x_groq")).get("error") or None


def error_of_body(body: object) -> object | None:
    """Return the error in the body of a refusal; ``None`` if it says nothing."""
    if isinstance(body, list):
        body = body[0] if body else None
    if not isinstance(body, dict):
        return body if isinstance(body, str) else None
    return error_in(body) or body.get("detail") or body or None


def reported_error(model: str, error: object, status: int | None = None) -> ChatModelError:
    """Return the exception for an error that a server reports in its own words.

    Args:
        model: The model's name.
        error: The value of ``error``: an object or a text.
        status: HTTP status; ``None`` if the error came inside an answer.
    """
    fields = object_of(error) or {"message": error}
    inner = object_of(fields.get("error"))
    fields = inner or fields
    code, kind, word = fields.get("code"), fields.get("type"), fields.get("status")
    told = count_of(code)
    if told is None:
        told = count_of(word)
    if status is None and told is not None and 400 <= told < 600:
        status = told
    words = f"{code} {kind} {word}".lower()
    if safe_word(fields.get("message")) or isinstance(error, str):
        words += f" {fields.get('message')}".lower()[:64]
    retryable = (status is not None and retryable_status(status)) or any(
        word in words for word in _PASSING_WORDS
    )
    return ChatModelError(
        "the server reported an error",
        model=model,
        retryable=retryable and not any(word in words for word in _FINAL_WORDS),
        status=status,
        code=safe_word(code) or safe_word(kind) or safe_word(word),
        detail=text_of(fields.get("message")) or text_of(fields.get("detail")) or str(error),
    )
