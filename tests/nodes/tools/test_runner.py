"""Tool calls: refused ones, duplicates, and the texts for the model."""

import pytest
import trio
import trio.testing

from bargein.events import ToolCall, ToolResult
from bargein.tools import Tool, ToolDefinitionError, ToolRunner, tool


def sleeper(**options):
    """A tool that takes five seconds, and counts how often it ran."""

    @tool("work", **options)
    async def work(number: int = 0) -> str:
        work.count = getattr(work, "count", 0) + 1
        await trio.sleep(5)
        return f"worked {number}"

    work.count = 0
    return work


async def test_what_models_are_told(autojump_clock, open_bench):
    """All tools but those that never run."""

    @tool(permission="never")
    async def launch() -> None:
        pass

    work = sleeper()
    async with open_bench(work, launch) as bench:
        assert bench.runner.schemas() == [work.as_function()]
        assert list(bench.runner.tools) == ["work", "launch"]


async def test_an_unknown_tool_is_told_with_the_known_ones(autojump_clock, open_bench):
    """The result comes at once, in words that let the model mend its call."""
    async with open_bench(sleeper()) as bench:
        running = bench.start("wrok", number=1)
        assert running.done.is_set()
        assert running.outcome == "not_started"
        assert await running.result() == ToolResult(
            name="wrok",
            id="c1",
            content="there is no tool 'wrok'. Did you mean 'work'? There are: 'work'.",
            error=True,
            outcome="not_started",
        )
        assert bench.start("zzz").final.content == "there is no tool 'zzz'. There are: 'work'."
        assert len(bench.caller.events(ToolCall)) == 2
        assert len(bench.call.running_tools) == 0


async def test_bad_arguments_are_told(autojump_clock, open_bench):
    """Wrong arguments, or ones that are not a JSON object, start nothing."""
    work = sleeper()
    async with open_bench(work) as bench:
        wrong = bench.start("work", number="x").final
        assert (wrong.error, wrong.outcome) == (True, "not_started")
        assert wrong.content.startswith("bad arguments for 'work': number: Input should be")
        broken = bench.start("work", raw='{"number":').final
        assert "must be one JSON object, not '{\"number\":'" in broken.content
        assert work.count == 0


async def test_a_tool_that_fails_to_read_its_arguments(autojump_clock, open_bench):
    """A fault in parse() is a result too, and fails neither the answer nor the call."""

    class Broken(Tool):
        def parse(self, arguments, raw=""):
            raise KeyError("schema")

        async def run(self, context, arguments):
            return ""

    async with open_bench(Broken("broken"), expect_errors=KeyError) as bench:
        result = bench.start("broken").final
        assert (result.error, result.outcome) == (True, "not_started")
        assert result.content == "KeyError"


async def test_a_tool_that_never_runs(autojump_clock, open_bench):
    """Nobody is asked, and the model's text differs from that for a user's "no"."""
    async with open_bench(sleeper(permission="never")) as bench:
        result = bench.start("work").final
        assert result.outcome == "denied"
        assert "not permitted" in result.content
        assert "user" not in result.content


async def test_nothing_starts_for_a_run_that_was_cut(autojump_clock, open_bench):
    """Call and result are in the history all the same, as a pair."""
    work = sleeper()
    async with open_bench(work) as bench:
        bench.run.cut()
        running = bench.start("work")
        assert running.outcome == "not_started"
        await trio.sleep(1)
        assert work.count == 0
        (entry,) = (e for e in bench.call.history.entries if e.role == "tool")
        assert entry.result.outcome == "not_started"


async def test_nothing_starts_in_a_call_that_is_over(autojump_clock, open_bench):
    """A call that has ended runs no tool."""
    work = sleeper()
    async with open_bench(work) as bench:
        bench.call.end()
        assert bench.start("work", job=True).outcome == "not_started"
    assert work.count == 0


async def test_identical_calls_run_unless_told_otherwise(autojump_clock, open_bench):
    """By default each call is carried out."""
    work = sleeper()
    async with open_bench(work) as bench:
        first, second = bench.start("work"), bench.start("work")
        await first.done.wait()
        await second.done.wait()
        assert work.count == 2


async def test_an_identical_call_is_refused(autojump_clock, open_bench):
    """`refuse` tells the model to wait; other arguments, or a later call, are another matter."""
    work = sleeper(on_duplicate="refuse")
    async with open_bench(work) as bench:
        first = bench.start("work", number=1)
        second = bench.start("work", number=1)
        other = bench.start("work", number=2)
        assert (second.outcome, second.final.error) == ("not_started", True)
        assert "identical call of 'work' is running already" in second.final.content
        await first.done.wait()
        await other.done.wait()
        assert bench.start("work", number=1).outcome is None
        await trio.testing.wait_all_tasks_blocked()
        assert work.count == 3


async def test_an_identical_call_joins(autojump_clock, open_bench):
    """`join` gives both the result of the one that runs, at the same time."""
    work = sleeper(on_duplicate="join")
    async with open_bench(work) as bench:
        first = bench.start("work", number=1)
        await trio.sleep(2)
        second = bench.start("work", number=1)
        result = await second.result()
        assert trio.current_time() == 5
        assert (result.id, result.content, result.outcome) == ("c2", "worked 1", "completed")
        assert (await first.result()).content == "worked 1"
        assert work.count == 1


async def test_what_joins_shares_the_fate(autojump_clock, open_bench):
    """When the running call is cancelled, both calls get the same result."""
    async with open_bench(sleeper(on_duplicate="join")) as bench:
        first = await bench.begin("work")
        second = await bench.begin("work")
        first.interrupt("cancel")
        await second.done.wait()
        assert first.outcome == second.outcome == "effect_unknown"
        assert first.final.content == second.final.content


async def test_what_joins_can_be_cut_alone(autojump_clock, open_bench):
    """An interrupt of the one that waits does nothing to the one that runs."""
    async with open_bench(sleeper(on_duplicate="join")) as bench:
        first = await bench.begin("work")
        second = await bench.begin("work")
        second.interrupt("cancel")
        await second.done.wait()
        assert second.outcome == "cancelled_before_effect"
        await first.done.wait()
        assert first.outcome == "completed"


async def test_nothing_joins_what_is_being_stopped(autojump_clock, open_bench):
    """A call that comes while the other one unwinds runs again."""

    @tool(on_duplicate="join")
    async def slow() -> str:
        try:
            await trio.sleep(9)
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(1)
        return "slept"

    async with open_bench(slow) as bench:
        first = await bench.begin("slow")
        first.interrupt("barge_in")
        second = bench.start("slow")
        assert (await second.result()).outcome == "completed"


async def test_a_tool_of_a_job_has_no_run(autojump_clock, open_bench):
    """A tool may be called by a job: it belongs to no answer, and is listed with the jobs."""
    async with open_bench(sleeper()) as bench:
        running = bench.start("work", job=True)
        assert running.answer == 0
        assert bench.call.running_tools.jobs == (running,)
        assert bench.call.running_tools.of(bench.run) == ()
        assert not running.to_background()
        assert (await running.result()).content == "worked 0"


@pytest.mark.parametrize("id", ["", "same"])
async def test_each_call_has_an_id_of_its_own(autojump_clock, open_bench, id):
    """An empty id, or that of a call under way, is a mistake of the caller's."""
    async with open_bench(sleeper()) as bench:
        bench.start("work", id="same")
        with pytest.raises(ValueError, match="needs an id of its own"):
            bench.runner.start(ToolCall(name="work", id=id), run=bench.run)
        assert len(bench.caller.events(ToolCall)) == 1


async def test_a_guard_that_fails_still_gives_a_result(autojump_clock, open_bench):
    """Whatever goes wrong around a tool, the model gets a result, and the call continues."""
    work = sleeper(permission="ask")
    async with open_bench(work, expect_errors=ValueError) as bench, trio.open_nursery() as nursery:
        nursery.start_soon(bench.call.permissions.ask, "same", "another", {}, bench.run)
        await trio.testing.wait_all_tasks_blocked()
        running = bench.start("work", id="same")
        await running.done.wait()
        assert running.outcome == "not_started"
        assert [question.name for question in bench.call.permissions.pending] == ["another"]
        assert not bench.call.ended.is_set()
        nursery.cancel_scope.cancel()


async def test_tools_have_names_of_their_own(autojump_clock, open_bench):
    """The runner's constructor raises for two tools of one name, or something that is no tool."""
    async with open_bench() as bench:
        with pytest.raises(ToolDefinitionError, match="two tools are called 'work'"):
            ToolRunner(bench.call, [sleeper(), sleeper()], source="agent")
        with pytest.raises(ToolDefinitionError, match="is no tool; write @tool before"):
            ToolRunner(bench.call, [print], source="agent")


async def test_a_tool_of_ones_own_class(autojump_clock, open_bench):
    """A subclass needs nothing but run()."""

    class Echo(Tool):
        async def run(self, context, arguments):
            return f"{context.name}: {arguments}"

    async with open_bench(Echo("echo")) as bench:
        assert (await bench.start("echo", a=1).result()).content == "echo: {'a': 1}"
