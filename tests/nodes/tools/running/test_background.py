"""A tool that goes on in the background."""

import math

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from bargein.control import StillRunning
from bargein.events import JobFinished
from bargein.tools import finish, shield

from .bench import sleeper


@pytest.mark.parametrize("policy", ["cancel", finish(1), shield(2), "detach"])
async def test_the_verb_background_moves_any_tool(autojump_clock, open_bench, policy):
    """`background` lets the same task go on, whatever the policy."""
    async with open_bench(sleeper(policy)) as bench:
        running = await bench.begin("work")
        await trio.sleep(3)
        kind = running.policy
        assert running.consequence("background") == "continues in the background"
        assert running.interrupt("background") == StillRunning("c1", "work", kind, math.inf)
        assert not running.to_background()
        await running.done.wait()
        assert trio.current_time() == 10
        assert running.final.ran_s == 10
        assert (running.final.outcome, running.final.content) == ("completed", "worked")
        assert bench.results() == [("c1", "backgrounded")]
        assert bench.caller.events(JobFinished) == []  # its result waits for the end of the answer


async def test_a_job_may_be_stopped(autojump_clock, open_bench):
    """Stopping a detached job cancels it."""
    async with open_bench(sleeper("detach")) as bench:
        running = await bench.begin("work")
        running.to_background()
        running.stop()
        await running.done.wait()
        assert trio.current_time() == 0
        assert running.final.outcome == "effect_unknown"


async def test_a_moved_tool_keeps_its_policy(autojump_clock, open_bench):
    """A job with a grace has it when it is stopped."""
    async with open_bench(sleeper(finish(2))) as bench:
        running = await bench.begin("work")
        running.to_background()
        running.stop()
        await running.done.wait()
        assert trio.current_time() == 2


async def test_cancel_wins_over_background(autojump_clock, open_bench):
    """What was asked to stop by a stronger verb cannot be moved any more."""
    async with open_bench(sleeper(finish(2))) as bench:
        running = await bench.begin("work")
        running.interrupt("cancel")
        assert not running.to_background()
        assert running.interrupt("background") == StillRunning("c1", "work", "finish", 2.0)
        await running.done.wait()
        assert bench.results() == [("c1", "effect_unknown")]


async def test_background_upgrades_a_barge_in(autojump_clock, open_bench):
    """What a weaker verb has given a grace may be moved, and then has time again."""
    async with open_bench(sleeper(finish(2))) as bench:
        running = await bench.begin("work")
        running.interrupt("barge_in")
        assert running.to_background()
        await running.done.wait()
        assert trio.current_time() == 10
        assert running.outcome == "completed"


async def test_a_job_has_its_own_grace(autojump_clock, open_bench):
    """The grace period from the answer's interrupt is forgotten; another one starts a new one."""
    async with open_bench(sleeper(finish(2))) as bench:
        running = await bench.begin("work")
        running.interrupt("barge_in")
        running.to_background()
        await trio.sleep(5)
        assert running.consequence("cancel") == "may finish, at most 2 s"
        assert running.interrupt("cancel") == StillRunning("c1", "work", "finish", 7.0)
        await running.done.wait()
        assert trio.current_time() == 7


async def test_a_detached_job_goes_on(autojump_clock, open_bench):
    """A detached job continues on a cancel, and consequence() says so."""
    async with open_bench(sleeper("detach")) as bench:
        running = await bench.begin("work")
        running.interrupt("barge_in")
        assert running.consequence("cancel") == "continues in the background"
        assert running.consequence("shutdown") == "is stopped"


async def test_a_job_keeps_its_timeout(autojump_clock, open_bench):
    """The background makes no tool live longer than its timeout."""
    async with open_bench(sleeper("detach", timeout_s=4)) as bench:
        running = await bench.begin("work")
        running.interrupt("barge_in")
        await running.done.wait()
        assert trio.current_time() == 4
        assert running.outcome == "timed_out"


async def test_a_listener_that_raises_harms_nobody(autojump_clock, open_bench):
    """What listens for the end of a job may fail; that is logged."""

    def fail(running, result):
        raise ValueError("listener")

    async with open_bench(sleeper("detach"), expect_errors=ValueError) as bench:
        bench.runner.on_settled = fail
        running = await bench.begin("work")
        running.to_background()
        with capture_logs() as logs:
            await running.done.wait()
        assert "listener_failed" in [line["event"] for line in logs]
        assert not bench.call.ended.is_set()
