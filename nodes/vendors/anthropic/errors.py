"""What Anthropic's errors mean, by the vendor's SDK 2.12 and public documentation."""

from __future__ import annotations

from bargein.nodes.services import ErrorTable

__all__ = ["ANTHROPIC_ERRORS"]

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
