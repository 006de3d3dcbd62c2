"""What Telnyx' errors mean."""

from __future__ import annotations

from bargein.nodes.services import ErrorTable

TELNYX_ERRORS = ErrorTable("Telnyx")
