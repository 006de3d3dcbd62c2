"""A running tool: its one result and its side effects on the call."""

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from bargein.control import Work
from bargein.events import ToolCall, ToolResult, UserStartedSpeaking
from bargein.tools import Tool, ToolContext, finish, shield, tool

from .bench import UNKNOWN, sleeper

# --- without an interrupt -------------------------------------------------------------------------


async def test_a_tool_runs_and_gives_one_result(autojump_clock, open_bench):
    """The call is published at once, the result when the body ends, with how long it ran."""
    async with open_bench(sleeper()) as bench:
        running = bench.start("work", seconds=2.5)
        assert bench.caller.events(ToolCall) == [
            ToolCall(name="work", arguments={"seconds": 2.5}, id="c1")
        ]
        assert running.started_at_s is None
        assert running in bench.call.running_tools.of(bench.run)
        result = await running.result()
        assert trio.current_time() == 2.5
        assert result == ToolResult(name="work", id="c1", content="worked", ran_s=2.5)
        assert running.done.is_set()
        assert running.outcome == "completed"
        assert running.final == result
        assert len(bench.call.running_tools) == 0
        assert bench.caller.events(ToolResult) == [result]


async def test_it_is_work_of_its_answer(autojump_clock, open_bench):
    """A running tool has everything that the control needs."""
    async with open_bench(sleeper(shield(3))) as bench:
        running: Work = bench.start("work")
        assert (running.id, running.name, running.policy) == ("c1", "work", "shield")
        assert running.run is bench.run
        assert running.answer == bench.call.answer_of(bench.run).number == 1
        assert running.started_at_s is None
        await trio.sleep(1)
        assert running.started_at_s == 0.0


async def test_cancelling_the_wait_does_not_stop_the_tool(autojump_clock, open_bench):
    """Waiting for a result can be cancelled, and another task can wait again."""
    async with open_bench(sleeper()) as bench:
        running = bench.start("work", seconds=4)
        with trio.move_on_after(1):
            await running.result()
        assert running.outcome is None
        assert (await running.result()).outcome == "completed"
        assert trio.current_time() == 4


async def test_an_error_is_the_result(autojump_clock, open_bench):
    """The model gets the class and message of a tool's exception, and the call continues."""

    @tool
    async def fail() -> None:
        raise LookupError("no such table")

    async with open_bench(fail, expect_errors=LookupError) as bench:
        with capture_logs() as logs:
            result = await bench.start("fail").result()
        assert result.error
        assert result.outcome == "completed"
        assert result.content == "LookupError"
        failed = next(line for line in logs if line["event"] == "tool_failed")
        assert failed["pii_error"] == "no such table"
        assert not bench.call.ended.is_set()


async def test_a_tool_that_takes_too_long_is_cut(autojump_clock, open_bench):
    """At its timeout a tool is cancelled, and the model learns that its effect is unknown."""
    async with open_bench(sleeper(shield(60), timeout_s=3.0)) as bench:
        result = await bench.start("work").result()
        assert trio.current_time() == 3
        assert result.error
        assert (result.outcome, result.ran_s) == ("timed_out", 3.0)
        assert result.content.startswith("It took too long and was stopped; it may have partially")


# --- what else becomes of it ----------------------------------------------------------------------


async def test_a_tool_without_effect_was_cancelled_before_it(autojump_clock, open_bench):
    """What only reads is safe to repeat, whenever it is cut."""
    async with open_bench(sleeper(read_only=True)) as bench:
        running = await bench.begin("work")
        running.interrupt("cancel")
        await running.done.wait()
        assert running.outcome == "cancelled_before_effect"


async def test_an_error_while_it_is_cut_changes_no_outcome(autojump_clock, open_bench):
    """What clean-up raises is logged; the model reads that the tool was cut."""

    @tool
    async def work() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise OSError("already closed")

    async with open_bench(work, expect_errors=OSError) as bench:
        running = await bench.begin("work")
        with capture_logs() as logs:
            running.interrupt("cancel")
            await running.done.wait()
        assert running.outcome == "effect_unknown"
        assert running.final.content == UNKNOWN
        assert "tool_failed" in [line["event"] for line in logs]


async def test_an_error_of_a_child_task_is_told_as_it_is(autojump_clock, open_bench):
    """A group with one error in it is that error."""

    async def fail():
        raise LookupError("deep")

    @tool
    async def work() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)

    async with open_bench(work, expect_errors=LookupError) as bench:
        result = await bench.start("work").result()
        assert (result.error, result.content) == (True, "LookupError")


async def test_a_clean_up_that_fails_does_not_fail_the_call(autojump_clock, open_bench):
    """An exception of a child task at the end of the call is only the tool's error."""

    async def fail_when_cancelled():
        try:
            await trio.sleep_forever()
        finally:
            raise OSError("gone")

    @tool
    async def work() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail_when_cancelled)
            nursery.start_soon(trio.sleep_forever)

    async with open_bench(work, expect_errors=OSError) as bench:
        running = await bench.begin("work")
    assert running.outcome == "effect_unknown"


async def test_a_tool_may_say_what_became_of_it(autojump_clock, open_bench):
    """What a tool concludes while it is cut stands beside the standard words."""

    class Outbox(Tool):
        async def run(self, context, arguments):
            try:
                await trio.sleep(9)
            except trio.Cancelled:
                context.conclude("3 of 10 mails were sent", error=False)
                raise
            return "all sent"

    async with open_bench(Outbox("outbox")) as bench:
        running = await bench.begin("outbox")
        running.interrupt("cancel")
        await running.done.wait()
        assert running.outcome == "effect_unknown"
        assert running.final.content == UNKNOWN + "\n3 of 10 mails were sent"


async def test_a_body_that_swallows_its_cancellation_is_abandoned(autojump_clock, open_bench):
    """After a bound it has its outcome, with a warning; what it does later nobody hears."""

    @tool
    async def deaf(context: ToolContext) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(30)
        context.progress("still there")
        return "late"

    async with open_bench(deaf) as bench:
        running = await bench.begin("deaf")
        with capture_logs() as logs:
            running.interrupt("cancel")
            await running.done.wait()
            assert trio.current_time() == 2
            assert running.outcome == "effect_unknown"
            assert len(bench.call.running_tools) == 0
            await trio.sleep(40)
        assert bench.results() == [("c1", "effect_unknown")]
        assert [
            r.event for r in bench.caller.received if r.at_s > 2 and "Tool" in repr(r.event)
        ] == []
        events = [line["event"] for line in logs]
        assert "tool_abandoned" in events
        assert "abandoned_tool_ended" in events


async def test_a_body_that_ends_well_all_the_same(autojump_clock, open_bench):
    """A body that takes its cancellation for a hint and returns has completed."""

    @tool
    async def stubborn() -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
        return "done at last"

    async with open_bench(stubborn) as bench:
        running = await bench.begin("stubborn")
        running.interrupt("cancel")
        await running.done.wait()
        assert running.outcome == "completed_after_interrupt"


async def test_asking_the_token_cuts_the_tool(autojump_clock, open_bench):
    """The token that a tool was given is linked to its scope."""
    tokens = []

    @tool
    async def work(context: ToolContext) -> None:
        tokens.append(context.token)
        await trio.sleep_forever()

    async with open_bench(work) as bench:
        running = await bench.begin("work")
        tokens[0].request()
        assert running.is_cut
        await running.done.wait()
        assert running.outcome == "effect_unknown"


async def test_the_token_is_asked_when_the_tool_is_cut(autojump_clock, open_bench):
    """A grace leaves the token quiet; the cut asks it, and what is forced says so."""
    seen = []

    @tool(policy=finish(2))
    async def work(context: ToolContext) -> None:
        seen.append(context)
        await trio.sleep_forever()

    async with open_bench(work) as bench:
        running = await bench.begin("work")
        (context,) = seen
        assert not context.is_stopping
        running.interrupt("barge_in")
        assert context.is_stopping
        assert not context.token.is_requested
        running.interrupt("emergency_stop")
        assert context.token.is_requested
        assert context.token.is_forced


async def test_the_token_tells_of_the_background(autojump_clock, open_bench):
    """A tool that polls can see that nobody waits for it any more."""
    seen = []

    @tool
    async def work(context: ToolContext) -> None:
        seen.append(context.token)
        await trio.sleep(3)

    async with open_bench(work) as bench:
        running = await bench.begin("work")
        running.to_background()
        assert seen[0].is_background_requested


@pytest.mark.parametrize("permission", ["auto", "ask"])
async def test_the_end_of_the_call_ends_it(autojump_clock, open_bench, permission):
    """A call that is over leaves no tool behind, and each has its result in the history."""
    async with open_bench(sleeper(shield(60), permission=permission)) as bench:
        running = bench.start("work")
        await trio.sleep(1)
    assert trio.current_time() == 1
    assert running.done.is_set()
    assert running.outcome == {"auto": "effect_unknown", "ask": "withdrawn"}[permission]
    (entry,) = (e for e in bench.call.history.entries if e.role == "tool")
    assert entry.result == running.final


async def test_a_late_result_reaches_the_history(autojump_clock, open_bench):
    """What ends after its answer was cut is published all the same, and lands in its entry."""
    async with open_bench(sleeper(shield(60))) as bench:
        running = await bench.begin("work")
        bench.caller.publish(UserStartedSpeaking())
        running.interrupt("barge_in")
        await running.done.wait()
        assert bench.run.is_cut
        assert bench.results() == [("c1", "completed_after_interrupt")]
        (entry,) = (e for e in bench.call.history.entries if e.role == "tool")
        assert entry.result == running.final
