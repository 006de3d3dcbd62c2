"""The body of a tool that runs."""

import pytest
import trio
import trio.testing

from bargein.nodes.tools._body import Body
from bargein.tools import Tool, ToolContext


class Work(Tool):
    """Does what a test says."""

    def __init__(self, fn):
        super().__init__("work")
        self.fn = fn

    async def run(self, context, arguments):
        return await self.fn(context)


@pytest.fixture
def make(open_bench):
    """Make a body in a call."""

    def made(bench, fn, on_stop=lambda: None):
        return Body(bench.call, Work(fn), "c1", "agent", bench.run, 1, on_stop, lambda: None)

    return made


def carry_out(body, begun=None):
    begun = [] if begun is None else begun
    return body.carry_out(ToolContext(body), {}, lambda: begun.append(1))


async def test_a_body_keeps_what_it_returned_and_when(autojump_clock, open_bench, make):
    """Its value is text, its times are trio's."""

    async def fn(context):
        await trio.sleep(2)
        return {"a": 1}

    async with open_bench() as bench:
        body, begun = make(bench, fn), []
        await carry_out(body, begun)
        assert (body.value, body.error, begun) == ('{"a":1}', None, [1])
        assert (body.begun_at_s, body.ended_at_s) == (0.0, 2.0)
        assert body.ended.is_set()


async def test_a_body_that_was_cut_before_does_not_begin(autojump_clock, open_bench, make):
    """Not a line of it runs, whoever has cancelled it."""
    ran = []

    async def fn(context):
        ran.append(1)

    async with open_bench() as bench:
        body = make(bench, fn)
        body.cut("test")
        await carry_out(body)
        assert body.begun_at_s is None
        other = make(bench, fn)
        with trio.CancelScope() as scope:
            scope.cancel()
            await carry_out(other)
        assert other.begun_at_s is None
        assert other.ended.is_set()
    assert not ran


async def test_an_error_of_a_child_task_is_told_as_it_is(autojump_clock, open_bench, make):
    """A group with one error in it is that error."""

    async def fail():
        raise LookupError("deep")

    async def fn(context):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)

    async with open_bench() as bench:
        body = make(bench, fn)
        await carry_out(body)
        assert isinstance(body.error, LookupError)


async def test_an_error_beside_a_cancellation_goes_no_further(autojump_clock, open_bench, make):
    """A clean-up that fails at the end of a call does not fail the call."""

    async def fail_when_cancelled():
        try:
            await trio.sleep_forever()
        finally:
            raise OSError("gone")

    async def fn(context):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail_when_cancelled)
            nursery.start_soon(trio.sleep_forever)

    async with open_bench() as bench:
        body = make(bench, fn)
        with trio.move_on_after(1) as scope:
            await carry_out(body)
        assert scope.cancelled_caught
        assert isinstance(body.error, OSError)


async def test_a_cut_asks_the_token_and_closes_the_commit_section(autojump_clock, open_bench, make):
    """In the same step, and whoever asks the token has it cut."""
    stops = []

    async def fn(context):
        await trio.sleep_forever()

    async with open_bench() as bench:
        body = make(bench, fn, lambda: stops.append(1))
        body.cut("test")
        assert body.token.is_requested
        assert not body.commit.open(99.0)
        assert stops == [1]


async def test_the_token_may_be_asked_from_a_thread(open_bench, make):
    """What it sets off happens on the event loop."""
    stopped = trio.Event()

    async def fn(context):
        await trio.sleep_forever()

    async with open_bench() as bench:
        body = make(bench, fn, stopped.set)
        with trio.fail_after(30):
            await trio.to_thread.run_sync(body.token.request)
            await stopped.wait()
