"""Responses that a speech-to-speech vendor refuses for a while, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.fakes import FakeOpenAIRealtime

from .calling import calling

REPLY = "One two three four."


class Busy(FakeOpenAIRealtime):
    """Refuses some responses as if another one were active."""

    refusals = 3
    code = "conversation_already_has_active_response"

    async def respond(self, line: Any, message: dict[str, Any], nursery: Any) -> None:
        if self.refusals:
            self.refusals -= 1
            await self.refuse(line, message, self.code)
        else:
            await super().respond(line, message, nursery)


@pytest.mark.parametrize("code", [Busy.code, "server_error", "rate_limit_exceeded"])
async def test_a_response_refused_for_now_is_asked_for_again(
    autojump_clock: Any, code: str
) -> None:
    """A vendor that still ends another response is asked again, and the caller is answered."""
    vendor = Busy(REPLY)
    vendor.code = code
    async with vendor.open(), calling(vendor) as caller:
        await vendor.hear("Hello?")
        await caller.quiet()
        assert caller.heard.strip() == REPLY


async def test_a_response_refused_for_good_is_an_error_at_once(autojump_clock: Any) -> None:
    """What asking again does not mend is asked once."""
    vendor = Busy(REPLY)
    vendor.code = "insufficient_quota"
    async with vendor.open(), calling(vendor, errors=True) as caller:
        await vendor.hear("Hello?")
        await caller.quiet()
    assert vendor.refusals == 2
