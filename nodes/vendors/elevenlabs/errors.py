"""What ElevenLabs' errors mean, by the vendor's SDK 2.78 and public documentation."""

from __future__ import annotations

from bargein.nodes.services import ErrorTable

__all__ = ["ELEVENLABS_ERRORS"]

ELEVENLABS_ERRORS = ErrorTable(
    "ElevenLabs",
    {
        "auth_error": "final",
        "quota_exceeded": "credit",
        "unaccepted_terms": "final",
        "invalid_request": "final",
        "commit_throttled": "ignore",  # a commit behind too little sound; the session goes on
        # Of the voice:
        "voice_not_found": "final",
        "invalid_voice_id": "final",
        "model_not_found": "final",
        "needs_authorization": "final",
        "missing_permissions": "final",
        "detected_unusual_activity": "final",
        "subscription_required": "credit",
        "payment_issue": "credit",
    },
)
