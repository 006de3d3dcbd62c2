"""What Vonage's errors mean."""

from __future__ import annotations

from bargein.nodes.services import ErrorTable

VONAGE_ERRORS = ErrorTable("Vonage")
