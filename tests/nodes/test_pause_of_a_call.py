"""A pause is of the call: in the background, inside tools and for other agents nothing begins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import trio
import trio.testing

from bargein import Call, ChatNode, Handle, open_agent
from bargein.events import (
    AgentResponse,
    ToolCall,
    TurnLikelyOver,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.fallback import Fallback
from bargein.llm import ChatModelError, HttpLimits, OpenAIChat, TextDelta, Usage
from bargein.testing import open_call
from bargein.tools import ToolContext, ToolRunner, current_tool, tool

from .reporting import asks

STEPS = [0.5, 1.0, 2.5, 3.0, 4.5]
"""Moments at which a call is paused, in seconds: amid requests, tools, and between them."""


class Asked:
    """A model that calls tools step by step, each after a second, and notes when it is asked."""

    def __init__(self, *steps: Sequence[Any], said: str = "It is done.") -> None:
        self.steps, self.said = list(steps), said
        self.at_s: list[float] = []

    async def stream(self, messages: Any, *, tools: Any = ()) -> AsyncIterator[Any]:
        if "talk" in str(messages):
            await trio.sleep(1000)  # it works in the foreground
        self.at_s.append(trio.current_time())
        await trio.sleep(1)
        for piece in self.steps.pop(0) if self.steps else [TextDelta(self.said)]:
            yield piece
        yield Usage()


def works(begun: list[float], name: str = "work", **options: Any) -> Any:
    """Return a tool that takes a second, and notes when it begins."""

    @tool(name, **options)
    async def work() -> str:
        """Work."""
        begun.append(trio.current_time())
        await trio.sleep(1)
        return "done"

    return work


@asynccontextmanager
async def paused_call(node: ChatNode, at_s: float) -> AsyncIterator[Handle]:
    """Pause a call while its first answer works in the background, and its second in front."""

    async with open_agent(node) as handle:
        handle.send_input("work")
        await trio.sleep(0.1)
        handle.background()
        await trio.sleep(0.1)
        handle.send_input("talk")
        await trio.sleep(at_s - 0.2)
        assert handle.describe("pause") == (
            "Pause: speech stands still, and no further step starts; nothing starts in the "
            "background either."
        )
        assert handle.pause().accepted
        yield handle


@pytest.mark.parametrize("at_s", STEPS)
async def test_an_answer_in_the_background_begins_nothing(autojump_clock, at_s: float):
    """It asks no model and starts no tool; what ran has ended, and it goes on when resumed."""
    begun: list[float] = []
    model = Asked([asks("work", "1")], [asks("work", "2")])
    async with paused_call(ChatNode(model, tools=[works(begun)]), at_s) as handle:
        await trio.sleep(20)
        assert [t for t in (*model.at_s, *begun) if t > at_s] == []
        handle.resume()
        await trio.sleep(20)
        assert (len(begun), len(model.at_s)) == (2, 3)


async def test_one_tool_after_the_other_waits_too(autojump_clock):
    """Of several calls in one step, those that have not begun wait for the end of the pause."""
    begun: list[float] = []
    model = Asked([asks("work", "1"), asks("work", "2")])
    node = ChatNode(model, tools=[works(begun)], parallel_tools=False)
    async with paused_call(node, 1.5) as handle:
        await trio.sleep(20)
        assert begun == [1]
        handle.resume()
        await trio.sleep(20)
        assert begun == [1, 21.5]


async def test_a_tool_of_a_job_waits(autojump_clock):
    """The body of a call that no run made begins after the pause, with and without a question."""
    begun: list[float] = []
    tools = [works(begun, "pay", permission="ask"), works(begun)]
    async with open_agent(ChatNode(Asked([asks("work", "0")]), tools=tools)) as handle:
        runner = ToolRunner(handle.call, tools, source="agent")
        handle.send_input("work")
        await trio.sleep(1.5)
        asked = runner.start(ToolCall(name="pay", id="1"), run=None)
        await trio.testing.wait_all_tasks_blocked()
        handle.pause()
        begun.clear()
        runner.start(ToolCall(name="work", id="2"), run=None)
        late = runner.start(ToolCall(name="pay", id="3"), run=None)
        await trio.sleep(1)
        assert [question.id for question in handle.call.permissions.pending] == ["1"]
        assert handle.respond("1", allow=True)
        await trio.sleep(20)
        assert begun == []
        handle.resume()
        await trio.sleep(2)
        assert begun == [22.5, 22.5]
        assert asked.outcome == "completed"
        assert handle.respond("3", allow=False)
        await trio.sleep(0.1)
        assert late.outcome == "denied"


def researches(inner: ChatNode, **options: Any) -> Any:
    """Return a tool that is an agent itself."""

    @tool(**options)
    async def research(context: ToolContext) -> str:
        """Ask a sub-agent."""
        if options.get("policy") == "detach":
            context.token.request_background()
        return "".join([p.content async for p in inner.generate() if hasattr(p, "content")])

    return research


@pytest.mark.parametrize("at_s", [1.5, 2.5, 3.5, 4.5])
async def test_an_agent_inside_a_tool_begins_nothing(autojump_clock, at_s: float):
    """The pause waits for the request or the tool that runs, and settles: the agent waits.

    The time limit of the outer tool stands still meanwhile.
    """
    begun: list[float] = []
    model = Asked([asks("work", "1")], [asks("work", "2")], said="Found.")
    node = ChatNode(model, tools=[works(begun)])
    outer = ChatNode(Asked([asks("research")]), tools=[researches(node, timeout_s=10)])
    async with open_agent(outer) as handle:
        handle.send_input("research")
        await trio.sleep(at_s)
        receipt = handle.pause()
        assert handle.snapshot().state == "pausing"
        await trio.sleep(2)
        assert handle.snapshot().state == "paused"
        assert receipt.settled
        await trio.sleep(50)
        assert [t for t in (*model.at_s, *begun) if t > at_s] == []
        handle.resume()
        await trio.sleep(20)
        assert (len(begun), len(model.at_s)) == (2, 3)
        result = handle.call.history.entries[1]
        assert (result.outcome, result.result.content) == ("completed", "Found.")


async def test_an_agent_inside_a_job_begins_nothing(autojump_clock):
    """Also when its tool has no run any more."""
    begun: list[float] = []
    model = Asked([asks("work", "1")], said="Found.")
    node = ChatNode(model, tools=[works(begun)])
    outer = ChatNode(
        Asked([asks("research")], [TextDelta("Wait. "), asks("wait")]),
        tools=[researches(node, policy="detach"), works([], "wait")],
    )
    async with open_agent(outer) as handle:
        handle.send_input("research")
        await trio.sleep(2.5)
        assert outer.jobs[0].status == "running"
        handle.pause()
        await trio.sleep(20)
        assert [t for t in (*model.at_s, *begun) if t > 2.5] == []
        handle.resume()
        await trio.sleep(20)
        assert outer.jobs[0].result.content == "Found."


async def test_no_other_model_is_asked(autojump_clock):
    """A fallback that fails over in a pause asks the next model when it is resumed."""

    class Broken:
        async def stream(self, messages: Any, *, tools: Any = ()) -> AsyncIterator[Any]:
            await trio.sleep(1)
            raise ChatModelError("gone", model="broken")
            yield

    model = Asked()
    async with open_agent(ChatNode(Fallback(Broken(), model))) as handle:
        handle.send_input("hello")
        await trio.sleep(0.5)
        handle.pause()
        await trio.sleep(20)
        assert model.at_s == []
        handle.resume()
        await trio.sleep(5)
        assert model.at_s == [20.5]


async def test_nothing_is_asked_ahead(autojump_clock):
    """A likely end of the caller's turn asks no speculative model while the call is paused."""
    begun: list[float] = []
    model = Asked([asks("work")])
    node = ChatNode(model, tools=[works(begun)], speculate=True)
    async with open_agent(node) as handle:
        handle.send_input("hello")
        await trio.sleep(1.5)
        handle.pause()
        handle.publish(TurnLikelyOver(content="and then"))
        await trio.sleep(20)
        assert model.at_s == [0]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_agents_without_the_floor_and_new_ones_wait(autojump_clock, when: str):
    """Neither an agent without the floor nor one that joins or gets it in a pause begins."""
    ran: list[float] = []

    async def talks(message: Any) -> AsyncIterator[AgentResponse]:
        yield AgentResponse(content="One. ")
        await trio.sleep(100)

    async def listens(message: Any) -> AsyncIterator[AgentResponse]:
        ran.append(trio.current_time())
        yield AgentResponse(content="Two. ")

    async def answer(call: Call) -> None:
        front = call.bridge(name="front").on(UserStoppedSpeaking)
        front.interrupt_on(UserStartedSpeaking).stream(talks).broadcast()
        if when == "before":
            call.bridge(name="desk")

    async with open_call(answer, audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        caller.call.handle.pause()
        desk = caller.call.bridge(name="new") if when == "after" else caller.call.bridges[1]
        desk.on(UserStoppedSpeaking).stream(listens).broadcast()
        caller.publish(UserStoppedSpeaking())
        caller.call.hand_over(desk)
        caller.publish(UserStoppedSpeaking())
        await caller.at(10)
        assert ran == []
        caller.call.handle.resume()
        await caller.at(11)
        assert ran
        assert min(ran) == 10


async def test_until_resumed_outside_of_a_call_waits_for_nothing(autojump_clock):
    """A model may use it wherever it is asked."""
    from bargein.routes import until_resumed

    await until_resumed()
    assert trio.current_time() == 0


async def test_a_tool_may_wait_for_the_end_of_a_pause_itself(autojump_clock):
    """A tool that is an agent of another kind holds still, and its time limit stands."""

    @tool(timeout_s=5)
    async def loop() -> str:
        """Work in steps."""
        for _ in range(3):
            await current_tool().until_resumed()
            await trio.sleep(1)
        return "done"

    async with open_agent(ChatNode(Asked([asks("loop")]), tools=[loop])) as handle:
        handle.send_input("hello")
        await trio.sleep(1.5)
        receipt = handle.pause()
        await receipt.settled
        assert trio.current_time() == 2
        assert handle.snapshot().state == "paused"
        await trio.sleep(20)
        handle.resume()
        await trio.sleep(5)
        [result] = [e for e in handle.call.history.entries if e.role == "tool"]
        assert result.outcome == "completed"


def refusing(refusals: int, at_s: list[float], *, takes_s: float = 0.0) -> OpenAIChat:
    """Return a model over HTTP that is refused so often, for three seconds each time."""
    answer = (
        'data: {"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}]}'
        "\n\ndata: [DONE]\n\n"
    )

    async def handle(request: httpx2.Request) -> httpx2.Response:
        if b"talk" in request.content:
            await trio.sleep(1000)  # it works in the foreground
        at_s.append(round(trio.current_time(), 3))
        await trio.sleep(takes_s)
        if len(at_s) <= refusals:
            return httpx2.Response(429, headers={"retry-after": "3"}, json={"error": {}})
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, text=answer)

    transport = httpx2.MockTransport(handle)
    limits = HttpLimits(attempts=3)
    return OpenAIChat("tiny", base_url="http://fake/v1", transport=transport, limits=limits)


@pytest.mark.parametrize("takes_s", [0.0, 2.0])
@pytest.mark.parametrize("background", [False, True])
async def test_a_refused_request_is_sent_again_only_after_the_pause(
    autojump_clock, background: bool, takes_s: float
):
    """A retry that falls due in a pause waits for its end, also in the background.

    It makes no difference whether the refusal came before the pause or in it.
    """
    at_s: list[float] = []
    async with open_agent(ChatNode(refusing(1, at_s, takes_s=takes_s))) as handle:
        handle.send_input("hello")
        await trio.sleep(0.5)
        if background:
            assert handle.background().accepted
            await trio.sleep(0.1)
            handle.send_input("talk")
            await trio.sleep(0.1)
        assert handle.pause().accepted
        await trio.sleep(60)
        assert at_s == [0]
        resumed_s = round(trio.current_time(), 3)
        handle.resume()
        await trio.sleep(30)
        assert at_s == [0, resumed_s]


@pytest.mark.parametrize("verb", ["cancel", "emergency_stop", "shutdown"])
async def test_a_stop_in_the_pause_sends_nothing_again(autojump_clock, verb: str):
    """A refused request that waits for the end of a pause is not sent once it is stopped."""
    at_s: list[float] = []
    async with open_agent(ChatNode(refusing(1, at_s))) as handle:
        handle.send_input("hello")
        await trio.sleep(0.5)
        handle.pause()
        await trio.sleep(30)
        assert getattr(handle, verb)().accepted
        handle.resume()
        await trio.sleep(30)
        assert at_s == [0]


async def test_a_retry_due_before_the_pause_is_sent_at_its_time(autojump_clock):
    """A pause that is over by then delays nothing."""
    at_s: list[float] = []
    async with open_agent(ChatNode(refusing(1, at_s))) as handle:
        handle.send_input("hello")
        await trio.sleep(0.5)
        handle.pause()
        await trio.sleep(1)
        handle.resume()
        await trio.sleep(30)
        assert at_s == [0, 3]


async def test_a_request_inside_a_tool_is_sent_again_only_after_the_pause(autojump_clock):
    """The model of an agent inside a tool waits with its retry, too."""
    at_s: list[float] = []
    model = Asked([asks("research")])
    inner = ChatNode(refusing(1, at_s))
    async with open_agent(ChatNode(model, tools=[researches(inner)])) as handle:
        handle.send_input("work")
        await trio.sleep(2)
        assert len(at_s) == 1
        handle.pause()
        await trio.sleep(60)
        assert len(at_s) == 1
        handle.resume()
        await trio.sleep(30)
        assert at_s[1] == 62
