"""What Rime's errors mean."""

from __future__ import annotations

from bargein.nodes.vendors import ErrorTable

RIME_ERRORS = ErrorTable("Rime")
