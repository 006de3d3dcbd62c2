"""What Plivo's errors mean."""

from __future__ import annotations

from bargein.bridge import CallActionError
from bargein.nodes.services import ErrorTable, VendorError
from bargein.nodes.services._phone_calls import refused_by_status

PLIVO_ERRORS = ErrorTable("Plivo")


def as_call_error(error: VendorError) -> CallActionError:
    """Return what an error of Plivo's means for a call that was to be made, or changed."""
    return refused_by_status(error, "PLIVO_AUTH_ID and PLIVO_AUTH_TOKEN, and the account's credit")
