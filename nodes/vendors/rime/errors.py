"""What Rime's errors mean."""

from __future__ import annotations

from bargein.nodes.services import ErrorTable

RIME_ERRORS = ErrorTable("Rime")
