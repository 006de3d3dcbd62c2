"""An address that is made anew for each connection of a session, in virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from bargein.fakes import FakeSonioxEar
from bargein.vendors import SessionLimits, VendorAddress, VendorError, open_session


def address(renew: Callable[[], Awaitable[VendorAddress]]) -> VendorAddress:
    """Return an address that is not to be used itself."""
    return VendorAddress(vendor="Acme", url="ws://nobody", renew=renew)


async def test_each_connection_gets_an_address_of_its_own(autojump_clock):
    """A lost line is followed by one with a new token and its own greeting."""
    made = 0

    async def renew() -> VendorAddress:
        nonlocal made
        made += 1
        return VendorAddress(
            vendor="Acme",
            url=f"ws://fake/session-{made}",
            headers={"Authorization": f"Bearer token-{made}"},
            greeting=(f'{{"type": "hello {made}"}}',),
        )

    async with FakeSonioxEar().open() as vendor:
        async with open_session(address(renew), dial=vendor.dial) as session:
            await session.ready()
            await trio.sleep(1)
            session.reopen(VendorError("Acme", "again"))
            await session.ready()
            await trio.sleep(1)
        assert [*vendor.requests] == ["/session-1", "/session-2"]
        assert [message["type"] for message in vendor.received] == ["hello 1", "hello 2"]


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (VendorError("Acme", "no session", retryable=False), "no session"),
        (KeyError("token"), r"could not be made \(KeyError\)"),
        (OSError("no route"), "no route"),
        (None, "TooSlowError"),
    ],
)
async def test_an_address_that_cannot_be_made_ends_the_session_with_its_error(
    autojump_clock, failure, words
):
    """Whatever the function raises, and if it never returns, the session says why it is lost."""

    async def renew() -> VendorAddress:
        if failure is not None:
            raise failure
        await trio.sleep_forever()
        raise AssertionError

    limits = SessionLimits(attempts=2)
    async with FakeSonioxEar().open() as vendor:
        async with open_session(address(renew), limits, dial=vendor.dial) as session:
            with pytest.raises(VendorError, match=words):
                await session.ready()
        assert not vendor.requests


async def test_an_address_that_is_made_later_continues_the_session(autojump_clock):
    """One failure costs time alone."""
    failures = [RuntimeError("not yet")]

    async def renew() -> VendorAddress:
        if failures:
            raise failures.pop()
        return VendorAddress(vendor="Acme", url="ws://fake", headers={"Authorization": "Bearer t"})

    async with (
        FakeSonioxEar().open() as vendor,
        open_session(address(renew), dial=vendor.dial) as session,
    ):
        await session.ready()
        assert session.lines == 1
