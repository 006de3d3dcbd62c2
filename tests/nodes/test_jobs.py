"""Background jobs, with scripted models, in virtual time."""

from __future__ import annotations

import json

import pytest
import trio

from bargein import Caps, ChatNode
from bargein.events import (
    AgentHandoff,
    AgentResponse,
    EmergencyStop,
    JobAnnounced,
    JobFinished,
    PermissionRequested,
    ToolResult,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.llm import TextDelta
from bargein.testing import ScriptedModel, calls, open_call
from bargein.tools import commit, shield, tool

from .answers_by_script import answer_with
from .reporting import Teller, asks, report


async def detach(caller, at_s=1.0):
    """Begin an answer, and barge in while its tool runs; then say nothing more."""
    caller.publish(UserStoppedSpeaking())
    await caller.at(at_s)
    caller.publish(UserStartedSpeaking())
    await trio.testing.wait_all_tasks_blocked()


def job_entries(caller):
    return [entry.job for entry in caller.call.history.entries if entry.role == "job"]


async def test_a_detached_tool_goes_on_and_its_result_is_told_once(autojump_clock):
    """A detached tool's result is reported by the agent exactly once."""
    model = Teller(asks("report"))
    node = ChatNode(model, tools=[report])
    async with open_call(answer_with(node)) as caller:
        await detach(caller)
        (job,) = node.jobs
        assert (job.id, job.name, job.status, job.result) == ("report", "report", "running", None)
        assert [work.id for work in caller.call.running_tools.jobs] == ["report"]
        assert caller.events(ToolResult)[0].outcome == "backgrounded"
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.heard == "I hear: nothing yet."
        assert caller.events(JobFinished) == []
        assert (await job.wait()).content == "report of 5 seconds"
        await caller.quiet()
        await trio.sleep(60)
        (finished,) = caller.events(JobFinished)
        assert (finished.id, finished.name, finished.outcome) == ("report", "report", "completed")
        assert caller.heard.endswith("I hear: report of 5 seconds.")
        assert caller.heard.count("report of 5 seconds") == 1
        assert job_entries(caller) == [finished]
        assert len(caller.events(ToolResult)) == 1
        assert (job.status, job.result.content) == ("finished", "report of 5 seconds")
        assert caller.call.running_tools.jobs == ()
    assert len(model.asked) == 3


async def test_a_tool_can_be_moved_while_the_answer_goes_on(autojump_clock):
    """to_background() gives the model its result, that it goes on; the job's own comes later."""

    @tool
    async def search() -> str:
        """Search."""
        await trio.sleep(5)
        return "found"

    model = Teller(asks("search"))
    async with open_call(answer_with(ChatNode(model, tools=[search])), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(2)
        (work,) = caller.call.running_tools
        assert work.to_background()
        await caller.quiet()
        assert caller.heard == "I hear: nothing yet."
        assert "later" in model.asked[1][-1]["content"]
        await caller.receives(JobFinished)
        await caller.quiet()
        assert caller.heard.endswith("I hear: found.")


async def test_an_answer_in_the_background_is_not_about_the_talk(autojump_clock):
    """An answer in the background completes its request, and its text is reported once."""
    model = Teller(asks("search"))
    model.calls.append([TextDelta("Well.")])  # what is said meanwhile gets another answer

    @tool
    async def search() -> str:
        """Search."""
        await trio.sleep(5)
        return "found"

    node = ChatNode(model, tools=[search])
    async with open_call(answer_with(node), audio=False) as caller:
        caller.publish(UserTranscriptionReceived(content="look it up"))
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        assert caller.call.handle.background().accepted
        caller.publish(UserTranscriptionReceived(content="by the way"))
        caller.publish(UserStoppedSpeaking())
        await caller.receives(JobFinished)
        await caller.quiet()
        await trio.sleep(30)
        assert len(caller.events(JobFinished)) == 1
        assert len(caller.events(ToolResult)) == 1
        assert caller.heard == "Well.\nI hear: I hear: nothing yet.."
    first, meanwhile, second, _ = model.asked
    assert "by the way" in json.dumps(meanwhile)
    assert second[: len(first)] == first
    assert "by the way" not in json.dumps(second)
    assert second[-1]["content"] == "found"


async def test_an_answer_that_moves_before_its_model_is_asked_has_its_task_last(autojump_clock):
    """The model of an answer in the background does not see the move, which it would answer."""

    class Slow(ChatNode):
        async def process_context(self, context):
            await trio.sleep(1)
            async for event in super().process_context(context):
                yield event

    model = Teller()
    async with open_call(answer_with(Slow(model)), audio=False) as caller:
        caller.publish(UserTranscriptionReceived(content="look it up"))
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        assert caller.call.handle.background().accepted
        await caller.receives(JobFinished)
        await caller.quiet()
    first, then = model.asked
    assert first == [{"role": "user", "content": "look it up"}]
    assert "answer 1 was moved to the background" in then[1]["content"]


async def test_a_result_waits_while_the_user_speaks_and_is_answered(autojump_clock):
    """A result that comes during a barge-in waits until the user was answered."""
    model = Teller(asks("report", seconds=2))
    async with open_call(answer_with(ChatNode(model, tools=[report]))) as caller:
        await detach(caller)
        await caller.at(6)  # the job has ended, and the user still speaks
        assert caller.events(JobFinished) == []
        caller.publish(UserTranscriptionReceived(content="never mind"))
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        await caller.quiet()
        assert caller.heard == "I hear: nothing yet.\nI hear: report of 2 seconds."
        assert len(caller.events(JobFinished)) == 1


async def test_an_answer_cut_unheard_is_brought_again(autojump_clock):
    """A result whose answer is interrupted before any word was heard is reported at the next
    boundary.

    That is another event, so that a route that acts on results acts once.
    """
    model = Teller(asks("report", seconds=2), thinks_s=0.5)
    async with open_call(answer_with(ChatNode(model, tools=[report]))) as caller:
        await detach(caller)
        caller.publish(UserStoppedSpeaking())
        await caller.receives(JobFinished)
        await trio.sleep(0.2)  # the model thinks what to say of it
        await caller.says("hm", takes_s=0.2)
        await caller.quiet()
        await caller.quiet()
        await trio.sleep(30)
        assert caller.heard.count("report of 2 seconds") == 2  # in its answer, and brought again
        (finished,) = caller.events(JobFinished)
        (announced,) = caller.events(JobAnnounced)
        assert (announced.id, announced.content) == (finished.id, finished.content)
        assert len(job_entries(caller)) == 1


@pytest.mark.parametrize("cut", ["voice", "redirect"])
async def test_a_result_that_is_brought_again_is_the_last_that_the_model_reads(autojump_clock, cut):
    """No provider is asked about a chat that ends with what the agent said since."""
    model = ScriptedModel(calls("report", seconds=2.0), then=[1.0, "The report is there."])
    async with open_call(answer_with(ChatNode(model, tools=[report]))) as caller:
        await caller.says("report", takes_s=0.2)
        await caller.says("and so on", at_s=1.0, takes_s=0.2)
        await caller.receives(JobFinished)
        await trio.sleep(0.4)  # the model thinks what to say of it
        if cut == "voice":
            await caller.says("hm", takes_s=0.2)
        else:
            caller.call.handle.redirect("hm")
        await caller.receives(JobAnnounced)
        await caller.quiet()
        last = model.requests[-1].messages[-1]
        assert last["role"] == "user"
        assert "report of 2 seconds" in last["content"]
        assert str(model.requests[-1].messages).count("report of 2 seconds") == 1


async def test_an_answer_cut_when_heard_is_not_brought_again(autojump_clock):
    """A result of which a word was heard is never told by itself again."""
    model = Teller(asks("report", seconds=2))
    async with open_call(answer_with(ChatNode(model, tools=[report]))) as caller:
        await detach(caller)
        caller.publish(UserStoppedSpeaking())
        await caller.receives(JobFinished)
        await caller.until(lambda c: c.heard.endswith("I hear:"))
        caller.publish(UserStartedSpeaking())
        await trio.sleep(5)
        assert caller.heard.endswith("I hear:")
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        await trio.sleep(30)
        assert len(caller.events(JobFinished)) == 1


async def test_results_are_told_one_after_the_other(autojump_clock):
    """A job that ends while another result is reported gets its own answer afterwards."""
    model = Teller(asks("report", "r1", seconds=4), asks("report", "r2", seconds=4.5))
    node = ChatNode(model, tools=[report])
    async with open_call(answer_with(node)) as caller:
        await detach(caller)
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(30)
        assert [event.id for event in caller.events(JobFinished)] == ["r1", "r2"]
        assert "I hear: report of 4 seconds.\nI hear: report of 4.5 seconds." in caller.heard
        assert [job.status for job in node.jobs] == ["finished", "finished"]


async def test_a_job_that_is_cancelled_is_not_told(autojump_clock):
    """cancel() stops a job; its result is recorded in the history and not reported."""
    model = Teller(asks("report"))
    node = ChatNode(model, tools=[report])
    async with open_call(answer_with(node)) as caller:
        await detach(caller)
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        (job,) = node.jobs
        job.cancel()
        assert (await job.wait()).outcome == "effect_unknown"
        await trio.sleep(30)
        assert (job.status, repr(job)) == ("cancelled", "<Job 'report' 'report' cancelled>")
        assert caller.heard == "I hear: nothing yet."
        assert [entry.outcome for entry in job_entries(caller)] == ["effect_unknown"]
        job.cancel()  # of no effect


async def test_what_may_not_be_cut_of_a_job_is_not(autojump_clock):
    """cancel() leaves a commit section, and a job that a shield keeps, to their ends."""

    @tool(policy=shield(60))
    async def pay() -> str:
        """Pay."""
        async with commit():
            await trio.sleep(4)
        return "paid"

    node = ChatNode(Teller(asks("pay")), tools=[pay])
    async with open_call(answer_with(node)) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        (work,) = caller.call.running_tools
        work.to_background()
        (job,) = node.jobs
        job.cancel()
        assert (await job.wait()).content.startswith("paid")
        assert job.status == "finished"


async def test_an_emergency_stop_ends_jobs_in_silence(autojump_clock):
    """After an emergency stop nothing runs, and the agent does not speak unasked."""
    node = ChatNode(Teller(asks("report")), tools=[report])
    async with open_call(answer_with(node)) as caller:
        await detach(caller)
        caller.publish(EmergencyStop())
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        await trio.sleep(30)
        assert node.jobs[0].result.outcome == "effect_unknown"
        assert caller.heard == "I hear: nothing yet."


async def test_the_time_of_a_job_is_capped(autojump_clock):
    """A job stops at its cap on time, counted from its call; the agent tells so."""
    model = Teller(asks("report", seconds=90))
    node = ChatNode(model, tools=[report], job_caps=Caps(wall_s=10))
    async with open_call(answer_with(node)) as caller:
        await detach(caller)
        caller.publish(UserStoppedSpeaking())
        (job,) = node.jobs
        result = await job.wait()
        assert caller.now_s == pytest.approx(10.1)
        assert (result.outcome, job.capped) == ("effect_unknown", "wall_s")
        assert job.usage["wall_s"] == (pytest.approx(10), 10)
        await caller.quiet()
        assert "may have partially executed" in caller.heard


async def test_the_time_of_a_job_goes_on_in_a_pause(autojump_clock):
    """A job of an answer that is paused is not paused, and its time does not stand still."""
    node = ChatNode(Teller(asks("report", seconds=90)), tools=[report], job_caps=Caps(wall_s=10))
    async with open_call(answer_with(node)) as caller:
        caller.call.control.pause_tools = "detach"
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        caller.call.handle.pause()
        (job,) = node.jobs
        await job.wait()
        assert caller.now_s == pytest.approx(10.1)


async def test_a_job_of_a_sub_agent_is_brought_too(autojump_clock):
    """The background result of a sub-agent's tool waits for a boundary and is reported."""

    @tool
    async def research() -> str:
        """Ask a sub-agent."""
        inner = ChatNode(Teller(asks("report", "inner", seconds=3)), tools=[report])
        return "".join([p.content async for p in inner.generate()])

    async with open_call(
        answer_with(ChatNode(Teller(asks("research")), tools=[research]))
    ) as caller:
        await detach(caller)
        await caller.at(6)
        assert caller.events(JobFinished) == []  # the user still speaks
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        await caller.quiet()
        assert caller.heard == "I hear: nothing yet.\nI hear: report of 3 seconds."


async def test_what_a_job_does_counts_to_its_answer(autojump_clock):
    """An agent inside a job uses up the caps of the job, and of the answer that began it."""
    counted = []

    @tool(policy="detach")
    async def research() -> str:
        """Ask a sub-agent."""
        inner = ChatNode(Teller(asks("report", "inner", seconds=3)), tools=[report])
        pieces = [p async for p in inner.generate() if isinstance(p, AgentResponse)]
        counted.append(answer.caps()["steps"])
        return "".join(piece.content for piece in pieces)

    model = Teller(asks("research"))
    node = ChatNode(model, tools=[research], caps=Caps(steps=9), job_caps=Caps(steps=2))
    async with open_call(answer_with(node)) as caller:
        caller.publish(UserStoppedSpeaking())
        (run,) = [r for route in caller.call.router.routes for r in route.runs]
        answer = caller.call.answer_of(run)
        await caller.at(1)
        (work,) = [w for w in caller.call.running_tools if w.name == "research"]
        assert work.to_background()
        (job,) = node.jobs
        await job.wait()
        assert "'steps' is reached" in job.result.content
        assert job.usage["steps"] == (2, 2)
    assert counted == []


async def test_the_questions_of_a_job_are_asked(autojump_clock):
    """A tool that asks first asks for a job too, whatever was remembered."""
    paid = []

    @tool(permission="ask")
    async def pay() -> str:
        """Pay."""
        paid.append(trio.current_time())
        return "paid"

    @tool(policy="detach")
    async def shop() -> str:
        """Ask a sub-agent."""
        await trio.sleep(3)
        inner = ChatNode(Teller(asks("pay", "inner")), tools=[pay])
        return "".join([p.content async for p in inner.generate()])

    model = Teller(asks("pay"), asks("shop"))
    async with open_call(answer_with(ChatNode(model, tools=[pay, shop])), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.receives(PermissionRequested)
        caller.call.handle.respond("pay", True, remember=True)
        await caller.at(1)
        caller.publish(UserStartedSpeaking())
        asked = await caller.receives(PermissionRequested)
        assert asked.id == "inner"
        await trio.sleep(5)
        assert len(paid) == 1
        assert caller.call.handle.respond("inner", False)
        await caller.call.running_tools.jobs[0].done.wait()


async def test_the_agent_that_has_the_floor_tells(autojump_clock):
    """After a hand-over the agent that has the floor reports the result."""
    first, second = Teller(asks("report", seconds=3)), Teller()
    second.calls = []
    node, other = ChatNode(first, tools=[report]), ChatNode(second)

    async def answer(call):
        await answer_with(node)(call)
        call.bridge(other, name="other")

    async with open_call(answer, audio=False) as caller:
        await detach(caller)
        caller.publish(AgentHandoff(target="other"))
        await caller.at(5)
        assert caller.events(JobFinished) == []  # the user still speaks
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.heard == "I hear: report of 3 seconds."
        assert len(caller.events(JobFinished)) == len(second.asked) == 1


async def test_a_job_ends_with_the_call(autojump_clock):
    """Hanging up stops a job and leaves no task behind."""
    node = ChatNode(Teller(asks("report", seconds=999)), tools=[report])
    async with open_call(answer_with(node)) as caller:
        await detach(caller)
        began_s = trio.current_time()
    assert trio.current_time() - began_s < 5
    assert node.jobs[0].status == "finished"
    assert not caller.call.running_tools


def test_a_node_outside_of_a_call_has_no_jobs():
    """Without a call there are no jobs."""
    assert ChatNode(Teller()).jobs == ()


def how_they_ended(caller):
    """Return how the jobs ended: as published, and as the history keeps it."""
    told = [event.ended for event in caller.events(JobFinished)]
    assert told == [job.ended for job in job_entries(caller)]
    return told


@tool(policy="detach")
async def work(ends: str) -> str:
    """Work for a while."""
    await trio.sleep(5)
    if ends == "failed":
        raise RuntimeError("no paper")
    return "done"


async def stop_by_handle(caller, node):
    node.jobs[0].cancel()


async def stop_by_verb(caller, node):
    caller.publish(EmergencyStop())


async def wait_for_it(caller, node):
    await node.jobs[0].wait()


@pytest.mark.parametrize(
    ("ends", "how"),
    [
        ("completed", wait_for_it),
        ("failed", wait_for_it),
        ("capped", wait_for_it),
        ("stopped", stop_by_handle),
        ("stopped", stop_by_verb),
    ],
)
async def test_the_end_of_a_tool_in_the_background_is_typed(autojump_clock, ends, how):
    """JobFinished says in a field of its own whether a tool completed, failed, was capped or
    stopped."""
    cap_s = 3.0 if ends == "capped" else 60.0
    node = ChatNode(Teller(asks("work", ends=ends)), tools=[work], job_caps=Caps(wall_s=cap_s))
    async with open_call(answer_with(node), expect_errors=ends == "failed") as caller:
        await detach(caller)
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        await how(caller, node)
        await trio.sleep(30)
        assert how_they_ended(caller) == [ends]


async def test_a_tool_in_the_background_that_takes_too_long_timed_out(autojump_clock):
    """Its JobFinished says so, and it is no stop."""

    @tool(policy="detach", timeout_s=2)
    async def wait() -> str:
        """Wait too long."""
        await trio.sleep(5)
        return "late"

    node = ChatNode(Teller(asks("wait")), tools=[wait])
    async with open_call(answer_with(node)) as caller:
        await detach(caller)
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(30)
        assert how_they_ended(caller) == ["timed_out"]


@pytest.mark.parametrize("ends", ["completed", "failed", "capped", "stopped"])
async def test_the_end_of_an_answer_in_the_background_is_typed(autojump_clock, ends):
    """JobFinished of an answer says whether it completed, failed, was capped or stopped."""
    last = RuntimeError("no line") if ends == "failed" else "Done."
    caps = Caps(wall_s=3) if ends == "capped" else Caps()
    node = ChatNode(ScriptedModel(["Let me see. ", 5.0, last], "By the way."), caps=caps)
    async with open_call(answer_with(node), expect_errors=ends == "failed") as caller:
        caller.publish(UserTranscriptionReceived(content="what is there?"))
        caller.publish(UserStoppedSpeaking())
        await caller.at(2)
        assert caller.call.handle.background().accepted
        await caller.at(2.5)
        if ends == "stopped":
            caller.call.handle.cancel()
        await trio.sleep(30)
        assert how_they_ended(caller) == [ends]


@pytest.mark.parametrize(
    ("fields", "ended"),
    [
        ({}, "completed"),
        ({"outcome": "completed_after_interrupt"}, "completed"),
        ({"error": True}, "failed"),
        ({"error": True, "outcome": "timed_out"}, "timed_out"),
        ({"outcome": "effect_unknown"}, "stopped"),
        ({"outcome": "effect_unknown", "error": True}, "failed"),
    ],
)
def test_a_job_of_an_older_record_has_an_end(fields, ended):
    """What was recorded before the field existed gets what its outcome and error suggest."""
    assert JobFinished(id="1", name="report", content="", **fields).ended == ended
    assert JobAnnounced(id="1", name="report", content="", **fields).ended == ended
