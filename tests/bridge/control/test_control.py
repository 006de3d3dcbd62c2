"""The control of a call with tools: what a verb stops, what goes on, and when it has settled."""

from __future__ import annotations

import trio

from bargein import ChatNode
from bargein.events import AnswerEnded, ToolResult, UserStartedSpeaking, UserStoppedSpeaking
from bargein.testing import ScriptedModel, calls, open_agent
from bargein.tools import finish, shield, tool


@tool(policy="cancel", read_only=True)
async def search() -> str:
    """Search."""
    await trio.sleep(30)
    return "found"


@tool(policy=finish(2))
async def write() -> str:
    """Write."""
    await trio.sleep(30)
    return "written"


@tool(policy=shield(20))
async def pay() -> str:
    """Pay."""
    await trio.sleep(5)
    return "paid"


@tool(policy="detach")
async def crawl() -> str:
    """Crawl."""
    await trio.sleep(60)
    return "crawled"


def agent(*names: str) -> ChatNode:
    return ChatNode(
        ScriptedModel([*map(calls, names)], then="Done."), tools=[search, write, pay, crawl]
    )


async def test_a_receipt_names_what_was_stopped_and_what_runs(autojump_clock):
    """Each tool stands on one side, with its policy and its deadline."""
    async with open_agent(agent("search", "write", "pay")) as handle:
        handle.send_input("go")
        await trio.sleep(1)
        receipt = handle.cancel()
        assert [one.tool for one in receipt.stopped] == ["search"]
        running = {s.tool: (s.policy, s.deadline_s) for s in receipt.still_running}
        assert running == {"write": ("finish", 3.0), "pay": ("shield", 20.0)}
        assert not receipt.settled
        await receipt.settled
        assert trio.current_time() == 5.0
        results = {e.call.name: e.outcome for e in handle.call.history.entries if e.role == "tool"}
        assert results == {
            "search": "cancelled_before_effect",
            "write": "effect_unknown",
            "pay": "completed_after_interrupt",
        }


async def test_what_is_promised_is_what_happens(autojump_clock):
    """The line that describes a verb names each tool that would go on; it does nothing."""
    async with open_agent(agent("search", "write", "pay")) as handle:
        handle.send_input("go")
        await trio.sleep(1)
        line = handle.describe("cancel")
        assert line.startswith("Cancel: the work ends")
        assert all(name in line for name in ("search", "write", "pay"))
        assert handle.snapshot().state == "tool"


async def test_a_detached_tool_keeps_no_verb_waiting(autojump_clock):
    """The verb settles at once; the job goes on and brings its result later."""
    async with open_agent(agent("crawl")) as handle:
        messages = handle.subscribe()
        handle.send_input("go")
        await trio.sleep(1)
        receipt = handle.cancel()
        await receipt.settled
        assert trio.current_time() < 2
        assert (handle.snapshot().state, handle.snapshot().backgrounded) == ("idle", 1)
        await trio.sleep(100)
        assert handle.snapshot().backgrounded == 0
        handle.shutdown()
        seen = [message.event async for message in messages]
        assert [e.outcome for e in seen if isinstance(e, ToolResult)] == ["backgrounded"]
        (job,) = [e.job for e in handle.call.history.entries if e.role == "job"]
        assert (job.content, job.outcome) == ("crawled", "completed")


async def test_a_stronger_verb_upgrades_in_one_record(autojump_clock):
    """Cancel, then emergency stop: the grace ends, and one record names the stronger."""
    async with open_agent(agent("write")) as handle:
        messages = handle.subscribe()
        handle.send_input("go")
        await trio.sleep(1)
        weaker = handle.cancel()
        await trio.sleep(0.5)
        assert handle.pause().reason == "superseded_by cancel"
        stronger = handle.emergency_stop()
        assert stronger.upgraded_from == "cancel"
        await stronger.settled
        assert trio.current_time() == 1.5
        await trio.sleep(0.1)
        assert weaker.settled
        (record,) = handle.call.history.interruptions
        assert record.verb == "emergency_stop"
        handle.shutdown()
        ends = [m.event.outcome async for m in messages if isinstance(m.event, AnswerEnded)]
        assert ends == ["interrupted"]


async def test_pause_lets_a_tool_finish_and_holds_what_follows(autojump_clock):
    """Pausing until the tool has its result, then paused; the model is asked once it goes on."""
    model = ScriptedModel([calls("pay")], then="Done.")
    async with open_agent(ChatNode(model, tools=[pay])) as handle:
        handle.send_input("go")
        await trio.sleep(1)
        receipt = handle.pause()
        assert handle.call.current_state == "pausing"
        await receipt.settled
        assert trio.current_time() == 5.0
        await trio.sleep(60)
        assert (handle.snapshot().state, len(model.requests)) == ("paused", 1)
        handle.resume()
        await trio.sleep(1)
        assert len(model.requests) == 2


async def test_pause_can_cancel_or_detach_the_tools(autojump_clock):
    """`pause_tools` says what a pause means to them."""
    for choice, outcome in (("cancel", "effect_unknown"), ("detach", "backgrounded")):
        async with open_agent(agent("pay" if choice == "detach" else "write")) as handle:
            handle.call.control.pause_tools = choice
            handle.send_input("go")
            await trio.sleep(1)
            handle.pause()
            await trio.sleep(30)
            (tool_entry,) = [e for e in handle.call.history.entries if e.role == "tool"]
            assert tool_entry.outcome == outcome


async def test_shutdown_gives_tools_their_time(autojump_clock):
    """Until the deadline tools end by their policies; then the call is over whatever they do."""
    async with open_agent(agent("pay", "write")) as handle:
        handle.send_input("go")
        await trio.sleep(1)
        receipt = handle.shutdown(deadline_s=2.5)
        assert {still.tool for still in receipt.still_running} == {"pay", "write"}
        await receipt.settled
        assert trio.current_time() == 3.5


async def test_a_tool_that_has_begun_is_marked_before_it_acts(autojump_clock):
    """What is on disk while a tool runs reads, after a kill, as one that may have run."""
    from bargein.conversations import repair

    async with open_agent(agent("pay")) as handle:
        handle.send_input("go")
        await trio.sleep(1)
        history = handle.call.history
        (running,) = [entry for entry in history.entries if entry.role == "tool"]
        assert (running.mark, running.result) == ("began", None)
        loaded = repair(history.entries)
        assert [entry.outcome for entry in loaded if entry.role == "tool"] == ["effect_unknown"]


async def test_a_cancel_reaches_what_a_barge_in_has_left(autojump_clock):
    """A tool in its grace after the caller spoke is told of, and waited for."""
    async with open_agent(agent("write")) as handle:
        handle.send_input("go")
        await trio.sleep(1)
        handle.call.publish(UserStartedSpeaking())
        handle.call.publish(UserStoppedSpeaking())
        await trio.sleep(0.5)
        assert "write" in handle.describe("cancel")
        receipt = handle.cancel()
        assert receipt.accepted
        assert [still.tool for still in receipt.still_running] == ["write"]
        await receipt.settled
        assert trio.current_time() == 3.0
