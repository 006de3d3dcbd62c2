"""What Exotel's errors mean."""

from __future__ import annotations

from bargein.bridge import CallActionError
from bargein.nodes.services import ErrorTable, VendorError
from bargein.nodes.services._phone_calls import refused_by_status

EXOTEL_ERRORS = ErrorTable("Exotel")


def as_call_error(error: VendorError) -> CallActionError:
    """Return what an error of Exotel's means for a call that was to be made."""
    return refused_by_status(error, "EXOTEL_API_KEY and EXOTEL_API_TOKEN, and the account's credit")
