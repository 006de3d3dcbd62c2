"""What Telnyx' errors mean."""

from __future__ import annotations

from bargein.bridge import CallActionError
from bargein.nodes.services import ErrorTable, VendorError

TELNYX_ERRORS = ErrorTable("Telnyx")


def as_call_error(error: VendorError) -> CallActionError:
    """Return what an error of Telnyx' means for a call that was to be made, or changed.

    Its statuses decide: 401 and 403 for the account, 404 for a call that is over, 422 for a number,
    429 for too many requests; Telnyx' texts stay with the developer.
    """
    told = error.safe_text
    match error.status:
        case 401 | 403:
            advice = f"check TELNYX_API_KEY, and the account's outbound voice profile ({told})"
            return CallActionError("calls cannot be made now", cause="unable", advice=advice)
        case 404:
            return CallActionError("the call is over", cause="caller_left", advice=told)
        case 400 | 422:
            return CallActionError("the number cannot be called", cause="refused", advice=told)
        case 429:
            return CallActionError("too many calls are being made", advice=told)
    return CallActionError("the call could not be made", advice=told)
