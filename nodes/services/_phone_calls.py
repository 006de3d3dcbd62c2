"""Calls that an account of a carrier places: ``dial()``, and what refusals mean."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from bargein.bridge import CallActionError
from bargein.bridge.validation.public_url import checked_public_url

from ._errors import VendorError

if TYPE_CHECKING:
    from bargein.bridge.wires.telephone.carrier_account import CarrierAccount
    from bargein.bridge.wires.telephone.placed_calls import PlacedCall


class PlacesCalls:
    """An account of a carrier that calls people; what accounts share."""

    _carrier_account: CarrierAccount
    _public_url: str | None = None
    """The address of the server that has the account's wires; ``None`` before one has."""

    async def dial(
        self,
        number: str,
        *,
        sender: str,
        answer: Callable[[Any], Awaitable[object]] | None = None,
        ring_s: float = 30.0,
        detect: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> PlacedCall:
        """Call somebody, and let an agent talk to them; return once the carrier has the order.

        The app has to be served meanwhile, with ``public_url=``.  If this is cancelled, a call that
        rings all the same is hung up when it is answered; nothing is ever dialled twice.

        Args:
            number: Who is called, as +15550001.
            sender: The number that they see, as +15550100: one of the account, and at Telnyx one
                that ``claim()``, or ``--number``, has given a TeXML application.
            answer: Answers this call instead of the app; ``None`` for the app.
            ring_s: How long it rings, in seconds.
            detect: Whether the carrier tells who answers, a person or a machine, while the agent
                talks: ``AnsweredBy`` with ``basis="carrier"``.  Carriers charge for it.
            options: Further fields of the carrier's request, such as ``{"Record": "true"}``.

        Raises:
            CallActionError: A number is none, too many calls are being made, or the carrier
                refuses; ``cause`` and ``advice`` say what to do.
            PhoneExtraError: httpx2 is not installed (extra ``phone``).
            RuntimeError: No server with `public_url` has the account's wires.
        """
        if self._public_url is None:
            name = type(self).__name__
            raise RuntimeError(
                f"{name}().dial() needs a server that {name} reaches: serve the app with "
                "public_url="
            )
        return await self._carrier_account.dial(
            number,
            sender=sender,
            base=checked_public_url(self._public_url),
            answer=answer,
            ring_s=ring_s,
            detect=detect,
            options=options,
        )


def refused_by_status(error: VendorError, check: str) -> CallActionError:
    """Return what an error means for a call that was to be made, or changed, by its status.

    401 and 403 are for the account, 404 for a call that is over, 400 and 422 for a number, and 429
    for too many requests; the carrier's own texts stay with the developer.

    Args:
        error: What the carrier said.
        check: What to check where the account may not, such as ``PLIVO_AUTH_ID``.
    """
    told = error.safe_text
    match error.status:
        case 401 | 402 | 403:
            advice = f"check {check} ({told})"
            return CallActionError("calls cannot be made now", cause="unable", advice=advice)
        case 404:
            return CallActionError("the call is over", cause="caller_left", advice=told)
        case 400 | 422:
            return CallActionError("the number cannot be called", cause="refused", advice=told)
        case 429:
            return CallActionError("too many calls are being made", advice=told)
    return CallActionError("the call could not be made", advice=told)
