"""What Deepgram's errors mean, by the vendor's SDK 7.17 and public documentation."""

from __future__ import annotations

from bargein.nodes.services import ErrorTable

__all__ = ["DEEPGRAM_ERRORS"]

DEEPGRAM_ERRORS = ErrorTable(
    "Deepgram",
    {
        "asr_payment_required": "credit",
        "tts_payment_required": "credit",
        "invalid_auth": "final",
        "insufficient_permissions": "final",
        "project_not_found": "final",
        "data-0002": "final",  # the text has inline controls that the voice does not take
        "schemaerror": "ignore",  # our message could not be parsed; the stream goes on
        # Answers to Configure:
        "configure_keyterms_not_supported": "ignore",
        "configure_keyterm_limit_exceeded": "ignore",
        "configure_already_pending": "ignore",
        "configure_internal_error": "ignore",
        "speed_out_of_range": "ignore",
        "speed_increment_invalid": "ignore",
        "speed_not_supported": "ignore",
        "control_combination_invalid": "ignore",
        # Warnings of the voice:
        "no_active_speech": "ignore",
        "no_synthesizable_text": "ignore",
        "synthesis_retrying": "ignore",
        "pronunciation_warnings": "ignore",
        "pronunciation_too_long": "ignore",
        "pronunciations_limit_exceeded": "ignore",
        "breaks_limit_exceeded": "ignore",
        "break_tokens_out_of_range": "ignore",
        "break_tokens_with_invalid_increments": "ignore",
        "no_audio_generated": "ignore",
        "interrupt_in_progress": "ignore",
        "invalid_interrupt_offset": "ignore",
    },
)
