"""What Twilio's errors mean, and what to do about those that refuse a call.

Source: Twilio's "Error and Warning Dictionary".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bargein.bridge import CallActionError
from bargein.bridge.events import CallActionCause
from bargein.nodes.services import ErrorTable, VendorError

TWILIO_ERRORS = ErrorTable(
    "Twilio",
    {
        "10001": "final",
        "10004": "passing",
        "20003": "final",
        "20005": "final",
        "20404": "final",
        "20429": "passing",
    },
)


class _RefusedCall(NamedTuple):
    """What a code says."""

    cause: CallActionCause
    reason: str
    advice: str


_BAD_NUMBER = _RefusedCall(
    "refused",
    "the number is none that can be called",
    "write it in E.164: +, the country and the number, such as +15550100",
)
_BAD_SENDER = _RefusedCall(
    "unable",
    "calls cannot be made now",
    "the number to call from is none of this account's, nor one that it has verified",
)
_CREDENTIALS = _RefusedCall(
    "unable",
    "calls cannot be made now",
    "check TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN: Twilio does not know them",
)
_ACCOUNT = _RefusedCall(
    "unable", "calls cannot be made now", "the account is not active: look at Twilio's console"
)
_OVER = _RefusedCall("caller_left", "the call is over", "")

REFUSALS: Mapping[str, _RefusedCall] = {
    "20003": _CREDENTIALS,
    "20005": _ACCOUNT,
    "10001": _ACCOUNT,
    "10004": _RefusedCall(
        "failed",
        "too many calls are being made",
        "the account has as many calls as it may: call later, or have its limit raised",
    ),
    "20429": _RefusedCall(
        "failed", "too many calls are being made", "Twilio takes no more requests: call more slowly"
    ),
    "20404": _OVER,
    "21220": _OVER,
    "21210": _BAD_SENDER,
    "21212": _BAD_SENDER,
    "21211": _BAD_NUMBER,
    "21214": _BAD_NUMBER,
    "21217": _BAD_NUMBER,
    "21215": _RefusedCall(
        "refused",
        "the number cannot be called",
        "allow its country under Voice, Geographic Permissions, in Twilio's console",
    ),
    "21216": _RefusedCall(
        "refused", "the number cannot be called", "Twilio blocks this number: ask its support"
    ),
    "21219": _RefusedCall(
        "refused",
        "the number cannot be called",
        "a trial account may only call numbers that it has verified: verify it, or upgrade",
    ),
}
"""What each code that refuses a call says, for the model and for the developer."""


def as_call_error(error: VendorError) -> CallActionError:
    """Return what an error of Twilio's means for a call that was to be made, or changed."""
    known = REFUSALS.get(error.code)
    if known is None and error.status == 401:
        known = _CREDENTIALS
    told = error.safe_text
    if known is not None:
        advice = f"{known.advice} ({told})" if known.advice else told
        return CallActionError(known.reason, cause=known.cause, advice=advice)
    return CallActionError("the call could not be made", cause="failed", advice=told)
