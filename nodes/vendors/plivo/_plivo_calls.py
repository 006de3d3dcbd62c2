"""Calls of Plivo by REST: dialled, ended and joined.

Sources: Plivo's reference of its API, "Make a call", "Transfer a call", "Hang up a call" and
"Cancel a queued call", and its Python package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import final
from urllib.parse import quote

from bargein.bridge import CallActionError
from bargein.nodes.services import VendorError
from bargein.nodes.services._carrier_requests import CarrierRequests, join_in_turn
from bargein.nodes.services._http_service import HttpService
from bargein.nodes.services._phone_account import json_fields

from .errors import as_call_error


@final
class PlivoCalls:
    """The calls of an account; see ``Carrier``."""

    __slots__ = ("_requests",)

    def __init__(self, service: Callable[[], HttpService]) -> None:
        """Ask nothing yet.

        Args:
            service: Returns the account's API; called at the first request.
        """
        self._requests = CarrierRequests(service, as_call_error)

    async def dial(
        self,
        number: str,
        *,
        sender: str,
        answer_url: str,
        status_url: str,
        ring_s: float,
        detect: bool,
        options: Mapping[str, str],
    ) -> str:
        """Call somebody; see ``Carrier.dial()``."""
        detection = {
            "machine_detection": "true",
            "machine_detection_url": status_url,
            "machine_detection_method": "POST",
        }
        wanted = {
            "to": number.lstrip("+"),
            "from": sender.lstrip("+"),
            "answer_url": answer_url,
            "answer_method": "POST",
            "ring_url": status_url,
            "ring_method": "POST",
            "hangup_url": status_url,
            "hangup_method": "POST",
            "ring_timeout": round(ring_s),
            **(detection if detect else {}),
            **options,
        }
        body = await self._requests.send("/Call/", "refused to dial", once=True, json=wanted)
        try:
            return str(json_fields("Plivo", body)["request_uuid"])
        except (VendorError, KeyError) as error:
            advice = "Plivo's answer has no id"
            raise CallActionError("the call could not be made", advice=advice) from error

    async def hang_up(self, call: str) -> None:
        """End a call; see ``Carrier.hang_up()``.

        One that was not answered is known by the id of its request alone.
        """
        for kind in ("Call", "Request"):
            path = f"/{kind}/{quote(call, safe='')}/"
            try:
                await self._requests.send(path, "refused to end the call", method="DELETE")
            except CallActionError as error:
                if error.cause != "caller_left":
                    raise
            else:
                return

    async def join(self, call: str, other: str, room_url: str) -> None:
        """Connect two calls by a conference that a webhook answers with; see ``Carrier.join()``."""
        wanted = {"legs": "aleg", "aleg_url": room_url, "aleg_method": "POST"}

        async def move(one: str) -> None:
            path = f"/Call/{quote(one, safe='')}/"
            await self._requests.send(path, "refused to change the call", json=wanted)

        await join_in_turn(self, call, other, move)
