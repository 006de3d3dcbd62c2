"""What the words mean with which providers say why a model's text ended.

Sources: OpenAI "Create chat completion" and "Realtime", Anthropic "Handling stop reasons", Google
"FinishReason", Mistral "Chat completion", llama.cpp's server.  Case does not count.
"""

from __future__ import annotations

_LIMIT = frozenset(
    {
        "length",
        "limit",
        "max_tokens",
        "max_output_tokens",
        "max_length",
        "model_length",
        "model_context_window_exceeded",
    }
)
_FILTER = frozenset(
    {
        "blocklist",
        "content_filter",
        "content_filtered",
        "guardrail_intervened",
        "prohibited_content",
        "recitation",
        "refusal",
        "safety",
        "sensitive",
        "spii",
    }
)


def is_cut_off(reason: str) -> bool:
    """Return whether the limit on tokens cut the text off."""
    return reason.lower() in _LIMIT


def is_filtered(reason: str) -> bool:
    """Return whether the provider withheld the text, or its rest, for what it says."""
    return reason.lower() in _FILTER


def may_differ(reason: str) -> bool:
    """Return whether the same question may get words at a second try."""
    return not (is_cut_off(reason) or is_filtered(reason))
