"""No message of a carrier raises, whatever it is, and none ends a call."""

import random

import pytest
import trio
from structlog.testing import capture_logs

from bargein.fakes import FakeLineHarness, FakeRetell
from bargein.testing import open_harness, open_phone
from tests.telephone_fuzzing import CODECS, attack, corpus, inputs


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("count", [40, pytest.param(1_000, marks=pytest.mark.proof)])
def test_no_input_raises(name, count):
    """Real messages with something wrong, JSON of any shape, and bytes are each an event."""
    with capture_logs():  # refused webhooks say so
        assert attack(name, count, seed=33) == []


def test_what_has_raised_once_raises_no_more():
    """The corpus, which nightly runs add to, is played again."""
    played = 0
    for name, data in corpus():
        make, messages = CODECS[name]
        for opened in (0, 1, 2):
            codec = make()
            for first in messages[:opened]:
                codec.decode(first)
            assert codec.decode(data) is not None
        played += 1
    assert played >= 10


async def test_the_fuzzed_webhooks_read_what_a_carrier_tells(autojump_clock):
    """What the fuzzing mutates opens a call, so that its inputs come as far as they can."""
    for name, (make, messages) in CODECS.items():
        if name.endswith(" webhooks"):
            *_, answered = make().decode(messages[0])
            assert getattr(answered, "status_code", 0) == 200, (name, answered)


async def answer(call):
    """Says nothing."""


@pytest.mark.parametrize("name", [*CODECS][:7])
@pytest.mark.parametrize("count", [30, pytest.param(400, marks=pytest.mark.proof)])
async def test_no_input_ends_a_call(autojump_clock, name, count):
    """A few hundred of the same over a socket: the call goes on, and no error is logged."""
    with capture_logs() as logs:
        async with open_phone(answer, wire=name) as phone:
            stream = inputs(random.Random(f"{name} {count}"), CODECS[name][1])
            sent = 0
            while sent < count:
                data = next(stream)
                if isinstance(data, str) and not data.isprintable():
                    continue  # a client cannot send it
                await phone.line.send_raw(data)
                sent += 1
                await trio.sleep(0.02)
            await trio.sleep(1)
            assert not phone.call.ended.is_set(), phone.call.end_reason
    bad = [line for line in logs if line.get("log_level") in ("error", "critical")]
    assert not bad


@pytest.mark.parametrize("name", ["line", "retell"])
@pytest.mark.parametrize("count", [30, pytest.param(400, marks=pytest.mark.proof)])
async def test_no_input_ends_a_call_of_a_platform(autojump_clock, name, count):
    """The same over a platform's socket; each further caller gets a call meanwhile."""
    fakes = {"line": FakeLineHarness, "retell": FakeRetell}
    with capture_logs() as logs:
        async with open_harness(answer, fakes[name]()) as harness:
            stream = inputs(random.Random(f"{name} {count}"), CODECS[name][1])
            sent = 0
            while sent < count:
                data = next(stream)
                if isinstance(data, str) and not data.isprintable():
                    continue  # a client cannot send it
                await harness.line.send_raw(data)
                sent += 1
                await trio.sleep(0.02)
            await trio.sleep(1)
            assert not harness.call.ended.is_set(), harness.call.end_reason
    bad = [line for line in logs if line.get("log_level") in ("error", "critical")]
    assert not bad
