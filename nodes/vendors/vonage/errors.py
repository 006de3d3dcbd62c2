"""What Vonage's errors mean."""

from __future__ import annotations

from bargein.bridge import CallActionError
from bargein.nodes.services import ErrorTable, VendorError
from bargein.nodes.services._phone_calls import refused_by_status

VONAGE_ERRORS = ErrorTable("Vonage")


def as_call_error(error: VendorError) -> CallActionError:
    """Return what an error of Vonage's means for a call that was to be made, or changed."""
    return refused_by_status(
        error, "VONAGE_APPLICATION_ID and VONAGE_PRIVATE_KEY, and the account's credit"
    )
