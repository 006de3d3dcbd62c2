"""What Telnyx' errors mean."""

from __future__ import annotations

from bargein.bridge import CallActionError
from bargein.nodes.services import ErrorTable, VendorError
from bargein.nodes.services._phone_calls import refused_by_status

TELNYX_ERRORS = ErrorTable("Telnyx")


def as_call_error(error: VendorError) -> CallActionError:
    """Return what an error of Telnyx' means for a call that was to be made, or changed."""
    return refused_by_status(error, "TELNYX_API_KEY, and the account's outbound voice profile")
