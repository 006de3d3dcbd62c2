"""What Twilio's errors mean."""

from __future__ import annotations

from bargein.nodes.services import ErrorTable

TWILIO_ERRORS = ErrorTable("Twilio")
