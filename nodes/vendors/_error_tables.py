"""One table for each vendor here: what its errors mean.

By the vendors' SDKs (deepgram-sdk 7.17, cartesia 4.2, elevenlabs 2.78, assemblyai 1.8, openai 3.54,
anthropic 2.12) and public documentation.  Only what is not passing has to be in a table; a code
that looks final and is not is there to say so.
"""

from __future__ import annotations

from ._error_table import ErrorTable

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

CARTESIA_ERRORS = ErrorTable(
    "Cartesia",
    {
        "plan_upgrade_required": "credit",
        "invalid_api_key": "final",
        "voice_not_found": "final",
        "model_not_found": "final",
        "concurrency_limited": "passing",
        "version_required": "final",
    },
)

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

GEMINI_ERRORS = ErrorTable(
    "Gemini",
    {  # of ``google.rpc.Code`` and ``google.api.ErrorReason``
        "invalid_argument": "final",
        "failed_precondition": "final",
        "not_found": "final",
        "out_of_range": "final",
        "unimplemented": "final",
        "billing_disabled": "credit",
        "resource_exhausted": "passing",  # of a minute or a day; its text says which
        "unavailable": "passing",
        "deadline_exceeded": "passing",
        "internal": "passing",
        "aborted": "passing",
        "cancelled": "passing",
        "unknown": "passing",
        "data_loss": "passing",
    },
)

OPENAI_ERRORS = ErrorTable(
    "OpenAI",
    {
        "invalid_request_error": "ignore",  # of one message in a session, which goes on
        # These codes may come with that type:
        "session_expired": "passing",
        "server_error": "passing",
        "rate_limit_exceeded": "passing",
        "invalid_api_key": "final",
        "insufficient_quota": "credit",
        "response_cancel_not_active": "ignore",  # the cancel crossed the response's end
        "billing_not_active": "credit",
        "billing_hard_limit_reached": "credit",
        "access_terminated": "credit",
        "account_deactivated": "final",
        "model_not_found": "final",
        "unsupported_model": "final",
        "unsupported_country_region_territory": "final",
        "ip_not_authorized": "final",
        # Why a response failed:
        "invalid_prompt": "final",
        "data_residency_mismatch": "final",
        "bio_policy": "final",
        "misalignment_policy_violation": "final",
        "invalid_image": "final",
        "invalid_image_format": "final",
        "invalid_base64_image": "final",
        "invalid_image_url": "final",
        "image_too_large": "final",
        "image_too_small": "final",
        "image_parse_error": "final",
        "image_content_policy_violation": "final",
        "invalid_image_mode": "final",
        "image_file_too_large": "final",
        "unsupported_image_media_type": "final",
        "empty_image_file": "final",
        "image_file_not_found": "final",
    },
)

ANTHROPIC_ERRORS = ErrorTable(
    "Anthropic",
    {
        "invalid_request_error": "final",
        "permission_error": "final",
        "not_found_error": "final",
        "request_too_large": "final",
        "memory_precondition_failed_error": "final",
        "contract_spend_limit_reached": "credit",
        "enforced_spend_limit_reached": "credit",
        "linked_organization_spend_limit_reached": "credit",
        "linked_organization_billing_unavailable": "credit",
        "organization_on_hold": "final",
        "organization_type_not_supported": "final",
        "cmek_key_disabled": "final",
    },
)
