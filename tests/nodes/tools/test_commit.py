"""The one section of a tool that is not cut."""

import math
import time

import pytest
import trio
import trio.testing

from bargein import Interrupted
from bargein.tools import CommitOverrunError, ToolContext, commit, tool

LIMIT_S = 30.0


async def test_a_section_lasts_until_its_deadline(autojump_clock, open_bench):
    """A clean-up inside the section may run; past the deadline leaving it raises."""
    steps = []

    @tool
    async def pay() -> str:
        try:
            async with commit(2.0):
                try:
                    await trio.sleep(9)
                finally:
                    steps.append(trio.current_time())
        except CommitOverrunError as error:
            steps.append(str(error))
        return "given up"

    async with open_bench(pay) as bench:
        result = await bench.start("pay").result()
        assert result.content == "given up"
    assert steps == [2.0, "the commit section of 'pay' was not over after 2.0 s"]


async def test_an_error_inside_is_passed_on(autojump_clock, open_bench):
    """The section hides no error, and says that the effect is not known."""

    @tool
    async def pay() -> None:
        async with commit():
            raise ConnectionError("reset")

    async with open_bench(pay, expect_errors=ConnectionError) as bench:
        result = await bench.start("pay").result()
        assert result.content.startswith("ConnectionError\n")
        assert result.outcome == "effect_unknown"


async def test_a_tool_has_one_section(autojump_clock, open_bench):
    """A second one is a mistake of the tool's."""

    @tool
    async def pay(context: ToolContext) -> None:
        async with context.commit():
            pass
        async with commit():
            pass

    async with open_bench(pay, expect_errors=RuntimeError) as bench:
        result = await bench.start("pay").result()
        assert result.content.startswith("RuntimeError")


async def test_after_a_cut_nobody_gets_in(autojump_clock, open_bench):
    """A tool that was cut on its way is cancelled at the door, and has had no effect."""
    effects = []

    @tool
    async def pay() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(1)  # deaf for a while
        async with commit():
            effects.append(1)

    async with open_bench(pay) as bench:
        running = await bench.begin("pay")
        running.interrupt("cancel")
        await running.done.wait()
        assert running.outcome == "cancelled_before_effect"
        assert not effects


async def test_a_shielded_tool_does_not_get_in_either(autojump_clock, open_bench):
    """A tool that shields itself from its cut is refused by an error."""
    raised = []

    @tool
    async def pay() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
            try:
                async with commit():
                    raised.append("entered")
            except Interrupted as error:
                raised.append(type(error))
                raise

    async with open_bench(pay) as bench:
        running = await bench.begin("pay")
        running.interrupt("cancel")
        await running.done.wait()
        assert raised == [Interrupted]
        assert running.outcome == "cancelled_before_effect"


@pytest.mark.parametrize("seconds", [0, -1, math.inf, math.nan])
async def test_impossible_deadlines(autojump_clock, open_bench, seconds):
    """A deadline is finite and above 0."""

    @tool
    async def pay(context: ToolContext) -> None:
        async with context.commit(seconds):
            pass

    async with open_bench(pay, expect_errors=ValueError) as bench:
        result = await bench.start("pay").result()
        assert result.content == "ValueError"


async def test_a_plain_with_is_for_threads(autojump_clock, open_bench):
    """On the event loop the section needs an `async with`."""

    @tool
    async def pay() -> None:
        with commit():
            pass

    async with open_bench(pay, expect_errors=TypeError) as bench:
        result = await bench.start("pay").result()
        assert result.content == "TypeError"


async def test_a_section_in_a_thread_is_waited_for(open_bench):
    """A thread inside its section is not abandoned, however short the patience otherwise."""
    entered = trio.Event()
    loop = trio.lowlevel.current_trio_token()

    @tool
    def pay() -> str:
        with commit(10.0):
            loop.run_sync_soon(entered.set)
            time.sleep(1.5)
        return "paid"

    with trio.fail_after(LIMIT_S):
        async with open_bench(pay) as bench:
            running = bench.start("pay")
            await entered.wait()
            still = running.interrupt("cancel")
            assert still is not None
            assert 8 < still.deadline_s - trio.current_time() <= 10
            await running.done.wait()
            assert running.outcome == "completed_after_interrupt"
            assert running.final.content.startswith("paid\n")


async def test_a_thread_that_was_cut_does_not_get_in(open_bench):
    """A thread that comes to its section after the cut is refused, and has had no effect."""
    begun = trio.Event()
    loop = trio.lowlevel.current_trio_token()
    effects = []

    @tool
    def pay(context: ToolContext) -> None:
        loop.run_sync_soon(begun.set)
        while not context.token.is_requested:
            time.sleep(0.01)
        with commit():
            effects.append(1)

    with trio.fail_after(LIMIT_S):
        async with open_bench(pay) as bench:
            running = bench.start("pay")
            await begun.wait()
            running.interrupt("cancel")
            await running.done.wait()
            assert running.outcome == "cancelled_before_effect"
            assert not effects


async def test_a_thread_that_overruns_its_section(open_bench):
    """Leaving it late raises, as on the event loop."""

    @tool
    def pay() -> None:
        with commit(0.05):
            time.sleep(0.2)

    with trio.fail_after(LIMIT_S):
        async with open_bench(pay, expect_errors=CommitOverrunError) as bench:
            result = await bench.start("pay").result()
            assert "CommitOverrunError" in result.content
            assert result.outcome == "effect_unknown"
