"""What OpenAI's errors mean, by the vendor's SDK 3.54 and public documentation."""

from __future__ import annotations

from bargein.nodes.services import ErrorTable

__all__ = ["OPENAI_ERRORS"]

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
