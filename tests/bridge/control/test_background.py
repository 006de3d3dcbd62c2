"""An answer that goes to the background: nothing of it is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
import trio.testing

from bargein import (
    Call,
    ChatNode,
    ConversationContext,
    InterruptToken,
    Message,
    current_run,
    open_agent,
)
from bargein.events import (
    AgentResponse,
    AnswerEnded,
    JobFinished,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.testing import Caller, ScriptedModel, calls, open_call
from bargein.tools import ToolContext, tool

WORDS = "one two three four five six seven eight"


async def test_what_was_generated_and_not_heard_is_part_of_the_result(autojump_clock):
    """Heard and result together are the whole answer, though the voice was far behind."""

    async def generate(message: Message) -> AsyncIterator[object]:
        for word in WORDS.split():
            yield AgentResponse(content=f"{word} ")
            await trio.sleep(0.1)
        await trio.sleep(5)
        yield AgentResponse(content="nine")

    async def answer(call: Call) -> None:
        route = call.bridge(name="agent").on(UserStoppedSpeaking)
        route.interrupt_on(UserStartedSpeaking).stream(generate).broadcast()

    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(1.5)
        caller.call.handle.background()
        await trio.sleep(0.5)
        heard = caller.heard
        await caller.receives(JobFinished)
        (result,) = caller.events(JobFinished)
        assert heard
        assert heard != WORDS
        assert heard + result.content == f"{WORDS} nine"


async def test_a_result_is_told_by_whoever_has_the_floor_at_its_moment(autojump_clock):
    """It waited while somebody spoke, and the floor went on to another agent meanwhile."""

    def tells(name: str) -> Any:
        async def tell(message: Message) -> AsyncIterator[object]:
            yield AgentResponse(content=f"{name}: {message.event.content}")

        return tell

    async def work(message: Message) -> AsyncIterator[object]:
        await trio.sleep(5)
        yield AgentResponse(content="found")

    async def answer(call: Call) -> None:
        front, desk = call.bridge(name="front"), call.bridge(name="desk")
        for place in (front, desk):
            jobs = place.on(JobFinished, source=place.name).interrupt_on(UserStartedSpeaking)
            jobs.stream(tells(place.name)).broadcast()
        turns = front.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
        turns.stream(work).broadcast()

    async with open_call(answer) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        caller.call.handle.background()
        await caller.at(4)
        caller.call.say("This takes a few seconds to be said.")
        await caller.at(5.5)  # the result is there
        caller.call.hand_over("desk")
        await caller.quiet()
        assert caller.heard.endswith("desk: found")
        assert len(caller.events(JobFinished)) == 1


# --- tokens


async def test_the_verb_tells_the_tokens_of_run_and_tools(autojump_clock):
    """What polls in the node and in a tool sees that nobody waits for it; it was not cut."""
    tokens: list[InterruptToken] = []

    @tool
    async def work(context: ToolContext) -> str:
        """Work."""
        run = current_run()
        assert run is not None
        tokens.extend([run.token, context.token, context.token.child()])
        await trio.sleep(3)
        return "worked"

    node = ChatNode(ScriptedModel(calls("work"), "It is done.", then="It is done."), tools=[work])
    async with open_agent(node) as handle:
        handle.send_input("Work!")
        await trio.sleep(1)
        assert [token.is_background_requested for token in tokens] == [False] * 3
        handle.background()
        assert [token.is_background_requested for token in tokens] == [True] * 3
        assert [token.is_requested for token in tokens] == [False] * 3
        assert [job.id for job in node.jobs] == ["answer_1"]
        await trio.sleep(10)
        assert node.jobs[0].result.content == "It is done."


@pytest.mark.parametrize("from_thread", [False, True])
async def test_asking_the_token_of_a_run_moves_its_answer(from_thread: bool):
    """The answer goes on in the background, as by the verb; from a thread too."""

    async def generate(message: Message) -> AsyncIterator[object]:
        run = current_run()
        assert run is not None
        token = run.token
        if from_thread:
            await trio.to_thread.run_sync(token.request_background)
        else:
            token.request_background()
        await trio.testing.wait_all_tasks_blocked()
        yield AgentResponse(content="unheard")

    async def answer(call: Call) -> None:
        route = call.bridge(name="agent").on(UserStoppedSpeaking)
        route.interrupt_on(UserStartedSpeaking).stream(generate).broadcast()

    async with open_call(answer, audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.receives(JobFinished)
        assert caller.heard == ""
        assert [event.outcome for event in caller.events(AnswerEnded)] == ["backgrounded"]
        assert [event.content for event in caller.events(JobFinished)] == ["unheard"]


async def test_asking_the_token_of_a_tool_moves_the_tool(autojump_clock):
    """The tool becomes a job of its own, and its answer goes on."""

    @tool
    async def work(context: ToolContext) -> str:
        """Work."""
        context.token.request_background()
        await trio.sleep(3)
        return "worked"

    node = ChatNode(ScriptedModel(calls("work"), "It is done.", then="It is done."), tools=[work])
    async with open_agent(node) as handle:
        handle.send_input("Work!")
        await trio.sleep(1)
        assert [(job.id, job.status) for job in node.jobs] == [("call_work", "running")]
        assert handle.snapshot().state == "idle"
        await trio.sleep(10)
        assert node.jobs[0].result.content == "worked"


def asks_the_token(caller: Caller, tokens: list[InterruptToken]) -> None:
    tokens[0].request_background()
    tokens[0].request()


def asks_the_token_then_cancels(caller: Caller, tokens: list[InterruptToken]) -> None:
    tokens[0].request_background()
    caller.call.handle.cancel()


def uses_verbs(caller: Caller, tokens: list[InterruptToken]) -> None:
    caller.call.handle.background()
    caller.call.handle.cancel()


def cancels_the_job(caller: Caller, tokens: list[InterruptToken]) -> None:
    caller.call.handle.background()
    [job] = caller.call.handle.jobs
    job.cancel()


@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.parametrize("audio", [False, True])
@pytest.mark.parametrize(
    "stops", [asks_the_token, asks_the_token_then_cancels, uses_verbs, cancels_the_job]
)
async def test_a_stop_in_the_same_step_wins(autojump_clock, stops: Any, audio: bool, paused: bool):
    """An answer that is moved and stopped in one step ends once, as interrupted."""
    tokens: list[InterruptToken] = []

    class Clerk(ChatNode):
        async def process_context(self, context: ConversationContext) -> AsyncIterator[Any]:
            tokens.append(current_run().token)
            async for piece in super().process_context(context):
                yield piece

    async def answer(call: Call) -> None:
        call.converse(Clerk(ScriptedModel(["Let me see what there is. ", 3.0, "Nothing."])))

    async with open_call(answer, audio=audio) as caller:
        await caller.says("what is there?", takes_s=0.5)
        await caller.at(1.0)
        if paused:
            caller.call.handle.pause()
            await caller.at(1.5)
        stops(caller, tokens)
        await caller.at(10.0)
        [end] = caller.events(AnswerEnded)
        [said] = [entry for entry in caller.call.history if entry.role == "agent"]
        assert end.outcome == "interrupted"
        assert said.interruption is not None
        assert caller.events(JobFinished) == []
        assert "Nothing." not in caller.heard
