"""Calls of Twilio by REST: dialled, ended and joined.

Source: Twilio's pages on the resources Calls and IncomingPhoneNumbers, API 2010-04-01.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import trio

from bargein.bridge import CallActionError
from bargein.nodes.services import VendorError
from bargein.nodes.services._http_service import HttpService
from bargein.nodes.services._phone_account import json_fields

from .errors import as_call_error

REQUEST_S = 10.0
"""How long Twilio may take to answer, in seconds; it takes a fraction of one."""

_CONFERENCE = (
    '<Response><Dial><Conference beep="false" startConferenceOnEnter="true" '
    'endConferenceOnExit="true">{}</Conference></Dial></Response>'
)
"""Where two people meet; it ends when one of them leaves."""

_STATUSES = ("initiated", "ringing", "answered", "completed")


@final
class TwilioCalls:
    """The calls of an account; see ``Carrier``."""

    __slots__ = ("_made", "_service")

    def __init__(self, service: Callable[[], HttpService]) -> None:
        """Ask nothing yet.

        Args:
            service: Returns the account's API; called at the first request.
        """
        self._made: HttpService | None = None
        self._service = service

    async def dial(
        self,
        number: str,
        *,
        sender: str,
        answer_url: str,
        status_url: str,
        ring_s: float,
        options: Mapping[str, str],
    ) -> str:
        """Call somebody; see ``Carrier.dial()``."""
        form = {
            "To": number,
            "From": sender,
            "Url": answer_url,
            "StatusCallback": status_url,
            "StatusCallbackEvent": list(_STATUSES),
            "Timeout": str(round(ring_s)),
            **options,
        }
        body = await self._post("/Calls.json", form, "refused to dial", once=True)
        try:
            return str(json_fields("Twilio", body)["sid"])
        except (VendorError, KeyError) as error:
            advice = "Twilio's answer has no id"
            raise CallActionError("the call could not be made", advice=advice) from error

    async def hang_up(self, call: str) -> None:
        """End a call; see ``Carrier.hang_up()``."""
        try:
            await self._change(call, {"Status": "completed"})
        except CallActionError as error:
            if error.cause != "caller_left":  # which is what was wanted
                raise

    async def join(self, call: str, other: str) -> None:
        """Connect two calls by a conference; see ``Carrier.join()``.

        The second one goes first: if it is over, the first one has not been touched.
        """
        room = f"bargein-{call}"
        twiml = _CONFERENCE.format(quoteattr(room)[1:-1])
        try:
            await self._change(other, {"Twiml": twiml})
        except CallActionError as error:
            if error.cause == "caller_left":
                raise CallActionError("the colleague has hung up", cause="declined") from error
            raise
        try:
            await self._change(call, {"Twiml": twiml})
        except BaseException:
            with trio.move_on_after(REQUEST_S, shield=True):
                await self._end_quietly(other)
            raise

    async def _end_quietly(self, call: str) -> None:
        try:
            await self.hang_up(call)
        except CallActionError:
            return  # the carrier ends it when its conference stays empty

    async def _change(self, call: str, form: Mapping[str, str]) -> None:
        await self._post(f"/Calls/{quote(call, safe='')}.json", form, "refused to change the call")

    async def _post(
        self, path: str, form: Mapping[str, Any], problem: str, *, once: bool = False
    ) -> bytes:
        if self._made is None:
            self._made = self._service()
        service = self._made

        async def attempt() -> bytes:
            exchange = await service.send(path, data=form)
            try:
                if not exchange.is_success:
                    raise await service.refusal(exchange, problem)
                return await exchange.read_all()
            finally:
                await exchange.aclose()

        async def in_time() -> bytes:
            try:
                with service.within(REQUEST_S, "answer"):
                    return await attempt()
            except VendorError as error:
                if once and not _was_surely_not_taken(error):
                    raise _without_retry(error) from error
                raise

        try:
            return await service.retrying(in_time)
        except VendorError as error:
            raise as_call_error(error) from error


def _was_surely_not_taken(error: VendorError) -> bool:
    """Whether Twilio has done nothing: it had too many requests, or could not be reached."""
    return error.status == 429 or error.problem.startswith("cannot connect")


def _without_retry(error: VendorError) -> VendorError:
    return VendorError(
        error.vendor,
        error.problem,
        retryable=False,
        status=error.status,
        code=error.code,
        detail=error.detail,
    )
