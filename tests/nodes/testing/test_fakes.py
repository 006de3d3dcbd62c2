"""Fakes of vendors are servers: in memory, and over real sockets."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from bargein import fakes
from bargein.ears import DeepgramFlux
from bargein.fakes import (
    FakeCartesiaEar,
    FakeCartesiaVoice,
    FakeDeepgramFlux,
    Fault,
    memory_stream_pair,
)
from bargein.speech import TurnOver, VoiceStyle
from bargein.vendors import SessionLimits, VendorError
from bargein.voices import CartesiaVoice
from tests import vendor_sdks

SOUND = b"\x01\x00" * 16_000
LIMIT_S = 20.0


async def test_a_stream_in_memory_is_a_stream():
    """It keeps what trio promises of streams that close by halves."""

    async def make():
        return memory_stream_pair()

    async def clogged():
        pair = memory_stream_pair()
        for stream in pair:
            with trio.move_on_after(0.05):
                await stream.send_all(bytes(100_000))
        return pair

    await trio.testing.check_half_closeable_stream(make, clogged)


async def test_a_stream_in_memory_has_bounded_room(autojump_clock):
    """A sender waits if its peer does not read."""
    left, _ = memory_stream_pair()
    with trio.move_on_after(1) as waited:
        await left.send_all(bytes(100_000))
    assert waited.cancelled_caught


async def test_an_ear_hears_over_a_real_socket():
    """The turns of the script are heard one after the other, over TCP."""
    vendor = FakeDeepgramFlux("a large latte", "thanks")
    with trio.fail_after(LIMIT_S):
        async with vendor.serve() as port:
            ear = DeepgramFlux(api_key="any", base_url=f"ws://127.0.0.1:{port}")
            async with ear.open_stream() as stream:
                heard = []
                for _ in range(2):
                    await stream.send(SOUND)
                    await stream.end_turn()
                    while not isinstance(fact := await stream.receive(), TurnOver):
                        pass
                    heard.append(fact.text)
    assert heard == ["a large latte", "thanks"]
    assert vendor.requests[0].startswith("/v2/listen?model=flux")


async def test_a_fault_happens_over_a_real_socket():
    """A voice whose vendor refuses it says so, over TCP."""
    vendor = FakeCartesiaVoice(fault=Fault("refuse", "connect", None, 401))
    with trio.fail_after(LIMIT_S):
        async with vendor.serve() as port:
            limits = SessionLimits(attempts=1)
            url = f"ws://127.0.0.1:{port}"
            voice = CartesiaVoice("joe", api_key="any", base_url=url, limits=limits)
            async with voice.open(), voice.open_context(VoiceStyle()) as context:
                with pytest.raises(VendorError, match="401"):
                    await context.receive()


async def test_who_has_no_key_is_refused(autojump_clock):
    """A fake wants what its vendor wants."""
    async with FakeDeepgramFlux().open() as vendor:
        ear = DeepgramFlux(api_key="k", base_url="ws://fake", dial=vendor.dial)
        async with ear.open_stream() as stream:
            await stream.send(SOUND)
            assert await stream.receive()
    assert list(vendor.received)[-1] == {"type": "CloseStream"}


def test_a_fake_knows_what_it_cannot_do():
    """A fault that the vendor has no message for is refused."""
    with pytest.raises(ValueError, match="FakeCartesiaEar cannot 'backwards'"):
        FakeCartesiaEar(fault=Fault("backwards"))


async def test_a_line_that_is_left_open_is_told(autojump_clock):
    """A fake that is closed while somebody is connected fails."""
    vendor = FakeDeepgramFlux()

    async def leave_a_line() -> None:
        async with vendor.open():
            stream = await vendor.dial()
            await trio.sleep(1)
            assert stream

    with pytest.raises(AssertionError, match="1 connections to FakeDeepgramFlux"):
        await leave_a_line()


def test_each_fake_is_proven_by_its_vendors_sdk():
    """No fake of a vendor is left out of what `make nightly` proves."""
    bases = {"FakeChat", "FakeEar", "FakeLine", "FakeTurn", "FakeVendor", "FakeVoice"}
    names = {name for name in fakes.__all__ if name.startswith("Fake")} - bases
    assert {name.removeprefix("Fake") for name in names} == {
        *vendor_sdks.PROOFS,
        *vendor_sdks.WITHOUT_SDK,
    }
