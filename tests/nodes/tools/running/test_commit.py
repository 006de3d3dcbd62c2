"""A tool in its commit section is not cut."""

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from bargein.control import StillRunning
from bargein.tools import CommitOverrunError, commit, finish, tool

from .bench import FORCED


def payment(policy="cancel", *, commits=False):
    """A tool that thinks for 2 s, pays for 3 s, and writes a receipt for 2 s."""

    @tool("pay", policy=policy, commits=commits)
    async def pay() -> str:
        await trio.sleep(2)
        async with commit(4.0):
            await trio.sleep(3)
        await trio.sleep(2)
        return "paid"

    return pay


@pytest.mark.parametrize("verb", ["barge_in", "cancel", *FORCED])
async def test_a_commit_section_is_not_cut(autojump_clock, open_bench, verb):
    """An interrupt within the section takes effect right after it."""
    async with open_bench(payment()) as bench:
        running = await bench.begin("pay")
        await trio.sleep(3)
        assert running.consequence(verb) == "completes its effect, at most 3 s"
        assert running.interrupt(verb) == StillRunning("c1", "pay", "cancel", 6.0)
        await running.done.wait()
        assert trio.current_time() == 5
        assert running.outcome == "effect_unknown"


async def test_before_its_commit_section_a_tool_has_done_nothing(autojump_clock, open_bench):
    """A tool that says that all its effect lies there is safe to repeat when cut before."""
    for commits, outcome in [(True, "cancelled_before_effect"), (False, "effect_unknown")]:
        async with open_bench(payment(commits=commits)) as bench:
            running = await bench.begin("pay")
            await trio.sleep(1)
            running.interrupt("cancel")
            await running.done.wait()
            assert running.outcome == outcome


async def test_a_grace_is_at_least_the_section(autojump_clock, open_bench):
    """interrupt() says when a tool in its commit section ends at the latest."""
    async with open_bench(payment(finish(1.0))) as bench:
        running = await bench.begin("pay")
        await trio.sleep(3)
        assert running.consequence("barge_in") == "may finish, at most 3 s"
        assert running.interrupt("barge_in") == StillRunning("c1", "pay", "finish", 6.0)
        await trio.sleep(1.5)
        assert running.is_cut
        assert running.interrupt("cancel") == StillRunning("c1", "pay", "finish", 6.0)
        await running.done.wait()
        assert trio.current_time() == 5


async def test_after_its_commit_section_the_effect_is_not_known(autojump_clock, open_bench):
    """A tool that is cancelled after its section has had its effect without reporting it."""
    async with open_bench(payment(commits=True)) as bench:
        running = await bench.begin("pay")
        await trio.sleep(6)
        running.interrupt("cancel")
        await running.done.wait()
        assert running.outcome == "effect_unknown"


async def test_a_tool_that_ends_with_its_section_completes(autojump_clock, open_bench):
    """An interrupt within the section does not take away a result that needs no more waiting."""

    @tool
    async def pay() -> str:
        async with commit():
            await trio.sleep(2)
        return "paid"

    async with open_bench(pay) as bench:
        running = await bench.begin("pay")
        await trio.sleep(1)
        running.interrupt("cancel")
        await running.done.wait()
        assert trio.current_time() == 2
        assert running.outcome == "completed_after_interrupt"
        assert running.final.content.startswith("paid\n")


async def test_a_section_that_overruns_fails(autojump_clock, open_bench):
    """At its deadline the section is left by an error, and its effect is not known."""

    @tool
    async def pay() -> None:
        async with commit(2.0):
            await trio.sleep_forever()

    async with open_bench(pay, expect_errors=CommitOverrunError) as bench:
        with capture_logs() as logs:
            result = await bench.start("pay").result()
        assert trio.current_time() == 2
        assert (result.error, result.outcome) == (True, "effect_unknown")
        assert (
            "CommitOverrunError: the commit section of 'pay' was not over after 2.0 s"
            in result.content
        )
        assert "verify before retrying" in result.content
        assert "commit_overrun" in [line["event"] for line in logs]


async def test_a_timeout_waits_for_the_section(autojump_clock, open_bench):
    """A tool's own timeout does not cut its section either."""

    @tool(timeout_s=1.0)
    async def pay() -> str:
        async with commit():
            await trio.sleep(3)
        return "paid"

    async with open_bench(pay) as bench:
        result = await bench.start("pay").result()
        assert (result.outcome, result.content, result.ran_s) == ("completed", "paid", 3.0)
