"""What AssemblyAI's errors mean, by the vendor's SDK 1.8 and public documentation."""

from __future__ import annotations

from bargein.nodes.services import ErrorTable

__all__ = ["ASSEMBLYAI_ERRORS"]

ASSEMBLYAI_ERRORS = ErrorTable(
    "AssemblyAI",
    {
        4000: "final",  # wrong sample rate
        4001: "final",  # not authorized
        4002: "credit",
        4003: "credit",  # a feature for accounts that pay
        4004: "passing",  # session not found: another line is another session
        4102: "passing",  # too many streams at once
    },
)
