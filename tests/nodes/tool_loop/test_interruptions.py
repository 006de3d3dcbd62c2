"""Interruptions of a model that calls tools, at every point of the loop."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
import trio

from bargein import ChatNode
from bargein.events import (
    AgentHandoff,
    AnswerEnded,
    ToolCall,
    ToolResult,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.testing import chat_problems, open_call
from bargein.tools import commit, current_tool, finish, shield, tool

from ..answers_by_script import answer_with
from .script import Script, asks, nap, results, texts, weather

# --- interruptions --------------------------------------------------------------------------------


async def test_paris_no_tokyo(autojump_clock):
    """After "Paris, no, Tokyo" Tokyo is asked for, and Paris reaches no answer."""
    model = Script(
        ["One moment. ", asks("weather", "p", city="Paris")],
        ["Right. ", asks("weather", "t", city="Tokyo")],
        ["It is sunny in Tokyo."],
    )
    async with open_call(answer_with(ChatNode(model, tools=[weather]))) as caller:
        await caller.says("the weather in Paris")
        await trio.sleep(1)
        await caller.says("no, Tokyo", takes_s=0.5)
        await caller.quiet()
        assert caller.heard == "One moment.\nRight. It is sunny in Tokyo."
        assert results(caller)["p"].outcome == "cancelled_before_effect"
        assert results(caller)["t"].outcome == "completed"
        assert len(results(caller)) == len(caller.events(ToolResult)) == 2
    last = json.dumps(model.asked[2])
    assert "sunny in Paris" not in last
    assert texts(model.asked[2], "user") == ["the weather in Paris", "no, Tokyo"]
    assert [t["id"] for m in model.asked[2] for t in m.get("tool_calls", ())] == ["p", "t"]


class Outbox:
    """Ten mails, each sent within a commit section of a second."""

    def __init__(self):
        self.sent = []

    def tool(self, **options):
        @tool(commits=True, **options)
        async def send(number: int) -> str:
            """Send a mail."""
            async with commit():
                await trio.sleep(1)
                self.sent.append(number)
            return f"sent mail {number}"

        return send


async def cut_outbox(options):
    outbox = Outbox()
    mails = [asks("send", f"m{n}", number=n) for n in range(1, 11)]
    model = Script(mails, ["So far so good."])
    node = ChatNode(model, tools=[outbox.tool(**options)], parallel_tools=False)
    async with open_call(answer_with(node), audio=False) as caller:
        caller.publish(UserTranscriptionReceived(content="send them"))
        caller.publish(UserStoppedSpeaking())
        await caller.at(3.5)
        await caller.says("stop!", takes_s=1.5)
        await caller.quiet()
        outcomes = [result.outcome for result in results(caller).values()]
    return outbox.sent, outcomes, model.asked[1]


@pytest.mark.parametrize("policy", ["cancel", finish(5), shield(5)])
async def test_an_outbox_is_cut(autojump_clock, policy):
    """Ten mails cut at 3.5 s: the one in its effect completes, no other starts, none goes twice."""
    sent, outcomes, asked = await cut_outbox({"policy": policy})
    assert sent == [1, 2, 3, 4]
    assert outcomes == ["completed"] * 3 + ["completed_after_interrupt"]
    told = texts(asked, "tool")
    assert [f"sent mail {n}" in words for n, words in enumerate(told, 1)] == [True] * 4
    assert "do not run it again" in told[3]
    assert "reject" not in json.dumps(asked)


async def test_parallel_tools_are_interrupted_each_by_its_policy(autojump_clock):
    """Of three tools of a step one finishes, one is cancelled, and one is not cut."""

    async def work() -> str:
        await trio.sleep(2)
        return "worked"

    tools = [
        tool(name="write", policy=finish(5))(work),
        tool(name="search", read_only=True)(work),
        tool(name="pay", policy=shield(9))(work),
    ]
    model = Script([asks("write", "w"), asks("search", "s"), asks("pay", "p")], ["All right."])
    async with open_call(answer_with(ChatNode(model, tools=tools)), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        await caller.says("never mind", takes_s=2)
        await caller.quiet()
        outcomes = {id: result.outcome for id, result in results(caller).items()}
    assert outcomes == {
        "s": "cancelled_before_effect",
        "w": "completed_after_interrupt",
        "p": "completed_after_interrupt",
    }
    assert chat_problems(model.asked[1]) == []
    assert len(texts(model.asked[1], "tool")) == 3


@pytest.mark.parametrize(
    ("at_s", "phase"),
    [(0.5, "connect"), (1.5, "connect"), (2.5, "text"), (4.5, "tool"), (6.5, "connect")],
)
async def test_a_barge_in_at_every_phase(autojump_clock, at_s, phase):
    """Cut anywhere, nothing more begins, and the next request is valid and holds all words."""

    class Slow(Script):
        async def stream(self, messages, *, tools=()):
            await trio.sleep(1)  # connects
            async for piece in super().stream(messages, tools=tools):
                yield piece

    model = Slow([1, "Hm. ", 1, asks("nap", "a", seconds=3)], [9, "never"])
    async with open_call(answer_with(ChatNode(model, tools=[nap])), audio=False) as caller:
        caller.publish(UserTranscriptionReceived(content="first"))
        caller.publish(UserStoppedSpeaking())
        await caller.at(at_s)
        (run,) = [r for route in caller.call.router.routes for r in route.runs]
        assert caller.call.answer_of(run).phase == phase
        asked = len(model.asked)
        caller.publish(UserStartedSpeaking())
        await trio.sleep(5)
        assert len(model.asked) == asked
        assert model.open == 0
        assert not caller.call.running_tools
        model.answers = ()
        caller.publish(UserTranscriptionReceived(content="second"))
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.heard.endswith("ok")
        assert caller.events(AnswerEnded)[0].outcome == "interrupted"
    assert texts(model.asked[-1], "user") == ["first", "second"]


async def test_a_barge_in_between_tools_starts_no_other(autojump_clock):
    """Cut in the very step in which a tool ends, the next tool of the step does not begin."""
    model = Script([asks("nap", "a", seconds=1), asks("nap", "b", seconds=1)])
    node = ChatNode(model, tools=[nap], parallel_tools=False)

    async def answer(call):
        await answer_with(node)(call)
        call.router.observe(ToolResult, lambda _: call.publish(UserStartedSpeaking()))

    async with open_call(answer, audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(5)
        assert [event.id for event in caller.events(ToolCall)] == ["a"]
        assert results(caller)["a"].outcome == "completed"
    assert len(model.asked) == 1


async def test_a_model_that_swallows_cancellation_starts_nothing(autojump_clock):
    """A cut answer calls no tool and no model, also where the cancellation was swallowed."""

    class Stubborn(Script):
        async def stream(self, messages, *, tools=()):
            self.asked.append(messages)
            with suppress(BaseException):
                await trio.sleep(5)
            yield asks("nap", "a", seconds=1)

    model = Stubborn()
    async with open_call(answer_with(ChatNode(model, tools=[nap])), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(1)
        caller.publish(UserStartedSpeaking())
        await trio.sleep(9)
        assert caller.events(ToolCall) == []
    assert len(model.asked) == 1


async def test_a_tool_that_swallows_it_is_followed_by_no_model(autojump_clock):
    """The model is not asked again for an answer that was cut while a shielded tool ran."""

    @tool(policy=shield(9))
    async def pay() -> str:
        """Pay."""
        await trio.sleep(2)
        return "paid"

    model = Script([asks("pay", "a")])
    async with open_call(answer_with(ChatNode(model, tools=[pay])), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(1)
        caller.publish(UserStartedSpeaking())
        await trio.sleep(5)
        assert results(caller)["a"].outcome == "completed_after_interrupt"
    assert len(model.asked) == 1


async def test_nothing_begins_in_a_pause(autojump_clock):
    """A paused answer asks no model when its tool ends; resumed, it goes on with the result."""
    model = Script([asks("nap", "a", seconds=2)], ["done"])
    async with open_call(answer_with(ChatNode(model, tools=[nap])), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        assert caller.call.handle.pause().accepted
        await caller.at(9)
        assert len(model.asked) == 1
        assert results(caller)["a"].outcome == "completed"
        caller.call.handle.resume("and a coffee")
        await caller.quiet()
        assert caller.heard == "done"
        assert caller.now_s == pytest.approx(9)
    assert "and a coffee" in json.dumps(model.asked[1][2:])
    assert len(caller.events(ToolCall)) == 1


async def test_a_tool_that_hands_over_ends_the_answer(autojump_clock):
    """Once a tool gave the floor away, its agent's model is asked no more; the result stands."""

    @tool
    async def transfer() -> str:
        """Hand over."""
        current_tool().call.hand_over("other")
        await trio.sleep(1)
        return "handed over"

    first, second = Script(["Bye. ", asks("transfer", "a")], ["never"]), Script(["Hello."])
    node, other = ChatNode(first, tools=[transfer]), ChatNode(second)

    async def answer(call):
        await answer_with(node)(call)
        bridge = call.bridge(other, name="other")
        bridge.on(AgentHandoff, target="other").stream(other.generate).broadcast()

    async with open_call(answer, audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(5)
        assert caller.heard == "Bye.\nHello."
        assert results(caller)["a"].content == "handed over"
    assert (len(first.asked), len(second.asked)) == (1, 1)


async def test_an_answer_that_no_chain_gives_ends_with_its_tools(autojump_clock):
    """Cancelling a task that iterates generate() by hand cancels its tools too."""
    node = ChatNode(Script([asks("nap", "a", seconds=9)]), tools=[nap])
    async with open_call(answer_with(node), audio=False) as caller:
        with trio.move_on_after(1):
            await anext(node.generate())
        await trio.testing.wait_all_tasks_blocked()
        assert results(caller)["a"].outcome == "effect_unknown"


# --- a tool that was cut just before --------------------------------------------------------------


@pytest.mark.parametrize("unwinds_s", [0.0] * 8 + [0.4, 3.0])
async def test_an_answer_waits_a_moment_for_tools_that_were_cut(autojump_clock, unwinds_s):
    """The next request has the outcome of a tool, not that its result will come later."""

    @tool(read_only=True)
    async def look() -> str:
        """Look."""
        try:
            await trio.sleep(10)
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(unwinds_s)
        return "seen"

    model = Script([asks("look")], ["All right."])
    node = ChatNode(model, tools=[look])
    async with open_call(answer_with(node)) as caller:
        await caller.says("look", takes_s=1.0)
        await caller.at(3.0)
        caller.call.handle.redirect("something else")
        await caller.quiet()
        assert model.asked_at_s[1] == pytest.approx(3.0 + min(unwinds_s, 1.0))
        [told] = texts(model.asked[1], "tool")
        assert ("will come later" in told) == (unwinds_s > 1.0)
        assert texts(model.asked[1], "user")[-1] == "something else"


async def test_a_result_that_comes_amid_an_answer_is_told(autojump_clock):
    """A tool that an earlier answer left running reads as completed as soon as it has completed."""

    @tool(policy=finish(5.0))
    async def book() -> str:
        """Book."""
        await trio.sleep(3)
        return "booked"

    model = Script([asks("book")], [asks("nap", seconds=4)], ["All right."])
    node = ChatNode(model, tools=[book, nap])
    async with open_call(answer_with(node)) as caller:
        await caller.says("book", takes_s=1.0)
        await caller.at(2.0)
        caller.call.handle.redirect("and take a nap")
        await caller.quiet()
        assert "will come later" in texts(model.asked[1], "tool")[0]
        told, napped = texts(model.asked[2], "tool")
        assert told.startswith("booked\nIt had been asked to stop, and completed")
        assert napped == "slept 4.0"
