"""An agent without a caller, as a test holds it."""

from __future__ import annotations

import pytest
import trio

from bargein import Call, ChatNode, History
from bargein.events import (
    AgentResponse,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.testing import ScriptedModel, ScriptError, calls, open_agent, words
from bargein.tools import tool


@tool(policy="detach")
async def report() -> str:
    """Write a report."""
    await trio.sleep(5)
    return "the report"


async def test_the_handle_leads_to_its_call(autojump_clock):
    """History, events of the caller's side, and the call itself are there without a caller."""
    model = ScriptedModel(words("One two three four.", 1.0), then="Yes?")
    async with open_agent(ChatNode(model)) as handle:
        assert isinstance(handle.call, Call)
        handle.send_input("count")
        await trio.sleep(2.5)
        assert handle.publish(UserStartedSpeaking())
        assert handle.publish(UserTranscriptionReceived(content="wait"))
        assert handle.publish(UserStoppedSpeaking())
        await trio.sleep(1)
        assert [e.heard for e in handle.history if e.role == "agent"] == ["One two ", "Yes?"]
        [record] = handle.history.interruptions
        assert record.verb == "barge_in"
        await handle.shutdown().settled
        assert not handle.publish(UserStoppedSpeaking())
        assert len(handle.history) == 4


async def test_the_jobs_of_all_agents_are_listed(autojump_clock):
    """A job stays listed when it has ended, with its result."""
    model = ScriptedModel(calls("report"), then="Here it is.")
    async with open_agent(ChatNode(model, tools=[report])) as handle:
        assert handle.jobs == ()
        handle.send_input("a report, please")
        await trio.sleep(1)
        await handle.cancel().settled
        [job] = handle.jobs
        assert (job.name, job.status) == ("report", "running")
        assert "report" in job.describe()
        result = await job.wait()
        assert result.content == "the report"
        assert [(one.id, one.status) for one in handle.jobs] == [("call_report", "finished")]


def test_a_handle_is_good_when_all_is_over():
    """In a thread, and after the event loop: what was is told, and nothing is taken any more."""
    seen = []

    async def main():
        async with open_agent(ChatNode(ScriptedModel("Hello."))) as handle:
            handle.send_input("hi")
            while "Hello." not in [e.heard for e in handle.history if e.role == "agent"]:  # noqa: ASYNC110
                await trio.sleep(0.01)
            seen.append(await trio.to_thread.run_sync(lambda: (len(handle.history), handle.jobs)))
        return handle

    handle = trio.run(main)
    assert seen == [(2, ())]
    assert (len(handle.history), handle.jobs) == (2, ())
    assert not handle.publish(UserStoppedSpeaking())


async def test_what_the_agent_raises_fails_the_test(autojump_clock):
    """A script that does not fit is no line in a log; expect_errors= allows it."""

    async def ask_twice(**options):
        async with open_agent(ChatNode(ScriptedModel("One.")), **options) as handle:
            for text in ("one", "two"):
                handle.send_input(text)
                await trio.sleep(1)

    with pytest.raises(ScriptError, match="asked 2 times"):
        await ask_twice()
    await ask_twice(expect_errors=ScriptError)
    with pytest.raises(ScriptError, match="asked 2 times"):
        await ask_twice(expect_errors=ZeroDivisionError)
    with pytest.raises(TypeError, match="expect_errors="):
        await ask_twice(expect_errors=3)


async def test_what_the_test_got_wrong_comes_first(autojump_clock):
    """The block's own failure is raised, and tells of the agent's in its notes."""

    async def fail():
        async with open_agent(ChatNode(ScriptedModel())) as handle:
            handle.send_input("one")
            await trio.sleep(1)
            raise KeyError("the test")

    with pytest.raises(KeyError) as caught:
        await fail()
    assert "asked 1 times" in "".join(caught.value.__notes__)


async def test_it_is_the_agent_of_production(autojump_clock):
    """Its handle is that of bridge.open_agent, with the name and the history that were given."""
    past = History()
    past.add_user("before", 1)
    async with open_agent(ChatNode(ScriptedModel("Now.")), name="clerk", history=past) as handle:
        messages = handle.subscribe()
        handle.send_input("now?")
        async for message in messages:
            if isinstance(message.event, AgentResponse):
                break
        assert message.source == "clerk"
        assert [e.content for e in handle.history if e.role == "user"] == ["before", "now?"]
