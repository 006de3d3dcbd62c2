"""What a tool that runs can do besides returning a result."""

import pytest
import trio
import trio.testing

from bargein.events import (
    AgentResponse,
    CustomReceived,
    ToolOutput,
    ToolProgress,
    UserStartedSpeaking,
)
from bargein.tools import ToolContext, commit, current_tool, shield, tool


async def test_what_a_tool_knows(autojump_clock, open_bench):
    """The call, the id of its call, its name, its answer, and itself by current_tool()."""
    seen = []

    @tool
    async def look(context: ToolContext) -> None:
        assert current_tool() is context
        seen.append(context)

    async with open_bench(look) as bench:
        await bench.start("look").result()
        (context,) = seen
        assert context.call is bench.call
        assert (context.id, context.name, context.answer_number) == ("c1", "look", 1)
        assert repr(context) == "<ToolContext of 'look' 'c1'>"


async def test_helpers_find_the_tool_they_work_for(autojump_clock, open_bench):
    """Each of several tools at work finds its own, in child tasks too."""
    found = {}

    async def helper():
        await trio.sleep(1)
        found[current_tool().id] = current_tool().name

    @tool
    async def one() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(helper)

    @tool
    async def two() -> None:
        await helper()

    async with open_bench(one, two) as bench:
        first, second = bench.start("one"), bench.start("two")
        await first.result()
        await second.result()
    assert found == {"c1": "one", "c2": "two"}


def test_outside_of_any_tool():
    """Outside a tool, current_tool() and commit() raise."""
    with pytest.raises(RuntimeError, match=r"no tool is running here; current_tool\(\) is for"):
        current_tool()
    with pytest.raises(RuntimeError, match=r"no tool is running here; commit\(\) is for"):
        commit()


async def test_progress_and_output_are_events(autojump_clock, open_bench):
    """They carry the id and the name of the tool, and are published in the step."""

    @tool
    async def work(context: ToolContext) -> None:
        context.progress("half", 0.5)
        context.progress("more")
        context.output("stderr", "oops\n")
        with pytest.raises(ValueError, match="fraction"):
            context.progress(fraction=1.5)

    async with open_bench(work) as bench:
        assert not (await bench.start("work").result()).error
        assert bench.caller.events(ToolProgress) == [
            ToolProgress(id="c1", name="work", text="half", fraction=0.5),
            ToolProgress(id="c1", name="work", text="more"),
        ]
        assert bench.caller.events(ToolOutput) == [
            ToolOutput(id="c1", name="work", stream="stderr", text="oops\n")
        ]


async def test_facts_are_published_also_after_a_cut(autojump_clock, open_bench):
    """A tool's events are published even if its answer was interrupted."""

    @tool(policy=shield(9))
    async def pay(context: ToolContext) -> None:
        await trio.sleep(1)
        context.publish(CustomReceived(metadata={"paid": 5}))

    async with open_bench(pay) as bench:
        running = await bench.begin("pay")
        bench.caller.publish(UserStartedSpeaking())
        running.interrupt("barge_in")
        await running.done.wait()
        assert bench.run.is_cut
        told = [event.metadata for event in bench.caller.events(CustomReceived)]
        assert told == [{"paid": 5}]


async def test_a_thread_reports_in_order(open_bench):
    """Progress that a tool reports from a thread comes before its result."""

    @tool
    def work(context: ToolContext) -> None:
        for i in range(20):
            context.progress(str(i))

    async with open_bench(work) as bench:
        await bench.start("work").result()
        told = [p.text for p in bench.caller.events(ToolProgress)]
        assert told == [str(i) for i in range(20)]


async def test_after_its_result_a_tool_is_silent(autojump_clock, open_bench):
    """Events of a task that a tool left behind are dropped."""

    @tool
    async def work(context: ToolContext) -> None:
        async def later():
            await trio.sleep(1)
            context.progress("too late")
            spoken.append(await context.say("too late"))

        context.call.nursery.start_soon(later)

    spoken = []
    async with open_bench(work) as bench:
        await bench.start("work").result()
        await trio.sleep(2)
        assert bench.caller.events(ToolProgress) == []
        assert spoken == [False]


async def test_a_tool_speaks_while_the_caller_waits(autojump_clock, open_bench):
    """What it says is part of the answer under way."""

    @tool
    async def look(context: ToolContext) -> None:
        assert await context.say("One moment.")
        assert await context.say(" Still looking. ")
        assert not await context.say("  ")

    async with open_bench(look) as bench:
        answer = bench.call.answer_of(bench.run)
        bench.call.router.publish(AgentResponse(content="Let me see."), "agent", bench.run)
        await bench.start("look").result()
        assert answer.generated == "Let me see. One moment. Still looking. "
        (entry,) = (e for e in bench.call.history.entries if e.role == "agent")
        assert entry.answer == answer.number


async def test_nobody_waits_for_what_is_cut_or_in_the_background(autojump_clock, open_bench):
    """Then a tool says nothing."""
    said = []

    @tool(policy="detach")
    async def work(context: ToolContext) -> None:
        await trio.sleep(1)
        said.append(await context.say("One moment."))
        await trio.sleep(1)

    async with open_bench(work) as bench:
        running = await bench.begin("work")
        running.interrupt("barge_in")
        await running.done.wait()
        assert said == [False]
        assert bench.caller.events(AgentResponse) == []
