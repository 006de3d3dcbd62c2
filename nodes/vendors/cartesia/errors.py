"""What Cartesia's errors mean, by the vendor's SDK 4.2 and public documentation."""

from __future__ import annotations

from bargein.nodes.services import ErrorTable

__all__ = ["CARTESIA_ERRORS"]

CARTESIA_ERRORS = ErrorTable(
    "Cartesia",
    {
        "plan_upgrade_required": "credit",
        "invalid_api_key": "final",
        "voice_not_found": "final",
        "model_not_found": "final",
        "concurrency_limited": "passing",
        "version_required": "final",
    },
)
