"""What Soniox's errors mean."""

from __future__ import annotations

from bargein.nodes.services import ErrorTable

SONIOX_ERRORS = ErrorTable(
    "Soniox",
    {400: "final", 401: "final", 402: "credit", 403: "final", 404: "final", 408: "passing"},
)
"""By the vendor's page "Error handling": 503 asks for another session, and is passing."""
