"""What Plivo's errors mean."""

from __future__ import annotations

from bargein.nodes.services import ErrorTable

PLIVO_ERRORS = ErrorTable("Plivo")
