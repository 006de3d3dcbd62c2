"""What Gemini's errors mean, by the vendor's public documentation."""

from __future__ import annotations

from bargein.nodes.services import ErrorTable

__all__ = ["GEMINI_ERRORS"]

GEMINI_ERRORS = ErrorTable(
    "Gemini",
    {  # of ``google.rpc.Code`` and ``google.api.ErrorReason``
        "invalid_argument": "final",
        "failed_precondition": "final",
        "not_found": "final",
        "out_of_range": "final",
        "unimplemented": "final",
        "billing_disabled": "credit",
        "resource_exhausted": "passing",  # of a minute or a day; its text says which
        "unavailable": "passing",
        "deadline_exceeded": "passing",
        "internal": "passing",
        "aborted": "passing",
        "cancelled": "passing",
        "unknown": "passing",
        "data_loss": "passing",
    },
)
