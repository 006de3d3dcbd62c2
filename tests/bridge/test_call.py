"""Who has the floor, how a call ends, and what becomes of failures."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import trio
import trio.testing

from bargein import Bridge, Call, Message
from bargein.events import (
    AgentError,
    AgentGenerationComplete,
    AgentHandoff,
    AgentResponse,
    CallEnded,
    DTMFInput,
    EndCall,
    StateChanged,
    ToolCall,
    ToolResult,
    UserAudio,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.routes import PublishLoopError
from bargein.testing import open_call
from tests.living import living_tasks

Answer = Callable[[Call], Awaitable[None]]


def says(text: str) -> object:
    async def generate(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content=text)

    return generate


def routes(bridge: Bridge, generate: object) -> None:
    """The usual chain of an agent that answers only while it has the floor."""
    (
        bridge.on(UserStoppedSpeaking, where=lambda m: bridge.has_floor)
        .interrupt_on(UserStartedSpeaking)
        .stream(generate)
        .broadcast()
    )


def two_agents(first: object, second: object = None) -> Answer:
    async def answer(call: Call) -> None:
        routes(call.bridge(name="front"), first)
        desk = call.bridge(name="desk")
        routes(desk, second or says("Desk."))
        desk.on(AgentHandoff, target="desk").stream(says("This is the desk.")).broadcast()

    return answer


# --- names and the floor ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "named", "words"),
    [
        ((Call,), {}, r"Bridge\(type, ...\) belongs to no call"),
        ((), {"node": 1}, r"write call\.bridge\(node\), which gives the node its place"),
    ],
)
def test_a_bridge_made_by_hand_is_answered_with_how_to_get_one(given, named, words):
    """Only a call makes bridges; the error says what to write, whatever was given."""
    with pytest.raises(TypeError, match=words):
        Bridge(*given, **named)


async def test_the_first_agent_has_the_floor(autojump_clock):
    """Ears and voices never have it; None has it before there is an agent."""

    async def answer(call: Call) -> None:
        assert call.floor is None
        ears = call.bridge(name="ears", is_agent=False)
        first, second = call.bridge(name="first"), call.bridge(name="second")
        assert call.floor is first
        assert call.bridges[-3:] == (ears, first, second)
        call.hand_over("ears")
        assert call.floor is first
        call.hand_over(second)
        assert call.floor is second

    async with open_call(answer, expect_errors="no agent") as caller:
        (error,) = caller.events(AgentError)
        assert error.message == "no agent 'ears' in this call; there are ['first', 'second']"


async def test_names_are_made_of_classes_and_never_clash(autojump_clock):
    """A given name must be free; a made one becomes so, and never is one of the call's own."""

    class CoffeeBar:
        pass

    class Caller:
        pass

    class Named:
        name = "barista"

    async def answer(call: Call) -> None:
        nodes = [CoffeeBar(), CoffeeBar(), Named(), Caller(), None]
        names = [call.bridge(node).name for node in nodes]
        assert names == ["coffee_bar", "coffee_bar_2", "barista", "caller_2", "agent"]
        for taken in ("barista", "caller", "call"):
            with pytest.raises(ValueError, match=f"the name '{taken}' is taken"):
                call.bridge(name=taken)

    async with open_call(answer) as caller:
        assert not caller.events(AgentError)


async def test_a_handoff_moves_the_floor_in_one_step(autojump_clock):
    """The old agent falls silent, the new one speaks, and the history is shared."""
    told: list[object] = []

    async def answer(call: Call) -> None:
        front = call.bridge(name="front")
        chain = front.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking, handler=told.append)
        chain.stream(says("One two three four")).broadcast()
        desk = call.bridge(name="desk")
        desk.on(AgentHandoff, target="desk").stream(says("Desk here")).broadcast()

    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.0)
        caller.publish(AgentHandoff(target="desk"))
        assert caller.call.floor is not None
        assert caller.call.floor.name == "desk"
        assert len(caller.cleared) == 1
        await caller.quiet()
        assert caller.heard == "One two\nDesk here"
        assert [e.agent for e in caller.call.history] == ["front", "desk"]
        assert caller.call.history.interruptions[0].cause == "agent.handoff"
        assert [type(m.event) for m in told] == [AgentHandoff]


async def test_the_agent_that_hands_over_is_heard_to_its_last_word(autojump_clock):
    """What it said before stays good; what it would have said after is never heard."""
    after: list[str] = []

    async def front(message: Message) -> AsyncIterator[object]:
        try:
            yield AgentResponse(content="One moment.")
            yield AgentHandoff(target="desk", reason="billing")
            yield AgentResponse(content="never")
            await trio.sleep(10)
            after.append("went on")
        finally:
            after.append(f"ended at {trio.current_time()}")

    async with open_call(two_agents(front), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.heard == "One moment.\nThis is the desk."
        assert after == ["ended at 0.0"]
        outcomes = [(e.content, e.outcome) for e in caller.events(AgentGenerationComplete)]
        assert ("One moment.", "completed") in outcomes
        assert caller.call.history.interruptions == ()
        await caller.says("a bill")
        await caller.quiet()
        assert caller.heard.endswith("Desk.")


async def test_a_handoff_that_is_interrupted_leaves_one_owner(autojump_clock):
    """The floor is with the new agent, which answers what the caller said."""

    async def front(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="One moment.")
        yield AgentHandoff(target="desk")

    async with open_call(two_agents(front), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.says("wait", at_s=0.5, takes_s=0.5)
        await caller.quiet()
        floors = [bridge.name for bridge in caller.call.bridges if bridge.has_floor]
        assert floors == ["desk"]
        assert caller.heard == "One\nDesk."


async def test_a_handoff_cuts_the_other_runs_of_the_old_agent(autojump_clock):
    """Only the run that hands over is spared; one that thinks beside it is cut."""

    async def think(message: Message) -> AsyncIterator[object]:
        await trio.sleep(5)
        yield AgentResponse(content="too late")

    async def hand_over(message: Message) -> AsyncIterator[object]:
        yield AgentHandoff(target="desk")

    async def answer(call: Call) -> None:
        front = call.bridge(name="front")
        front.on(UserStoppedSpeaking).stream(think).broadcast()
        front.on(DTMFInput).stream(hand_over).broadcast()
        call.bridge(name="desk")

    async with open_call(answer) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        caller.publish(DTMFInput(button="1"))
        await caller.quiet()
        outcomes = sorted(e.outcome for e in caller.events(AgentGenerationComplete))
        assert outcomes == ["completed", "interrupted"]
        assert caller.heard == ""


async def test_an_unknown_target_changes_nothing(autojump_clock):
    """It is told as an error, and the old agent goes on to speak."""
    async with open_call(
        two_agents(says("One two three")), chars_per_s=10, expect_errors="no agent"
    ) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        caller.publish(AgentHandoff(target="nobody"))
        await caller.quiet()
        assert caller.heard == "One two three"
        (error,) = caller.events(AgentError)
        assert "'nobody'" in error.message
        assert caller.call.floor is not None
        assert caller.call.floor.name == "front"


async def test_an_agent_without_the_floor_thinks_unheard(autojump_clock):
    """Its text reaches neither ear nor page nor history; its other events do."""

    async def think(message: Message) -> AsyncIterator[object]:
        yield ToolCall(name="look", id="1")
        yield AgentResponse(content="I think so")
        yield ToolResult(name="look", id="1", content="found")

    for audio in (True, False):

        async def answer(call: Call) -> None:
            routes(call.bridge(name="front"), says("Hello"))
            call.bridge(name="thinker").on(UserStoppedSpeaking).stream(think).broadcast()

        async with open_call(answer, audio=audio, chars_per_s=10) as caller:
            caller.publish(UserStoppedSpeaking())
            await caller.quiet()
            assert caller.heard == "Hello"
            assert [e.content for e in caller.events(AgentResponse)] == ["Hello"]
            assert [e.content for e in caller.events(ToolResult)] == ["found"]
            assert sorted(e.role for e in caller.call.history) == ["agent", "tool"]


async def test_an_agent_that_thinks_aside_does_not_hold_up_the_call(autojump_clock):
    """State and goodbye look at the agent that is heard."""

    async def think(message: Message) -> AsyncIterator[object]:
        await trio.sleep(100)
        yield AgentResponse(content="unheard")

    async def answer(call: Call) -> None:
        routes(call.bridge(name="front"), says("Hello"))
        call.bridge(name="thinker").on(UserStoppedSpeaking).stream(think).broadcast()

    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.now_s == pytest.approx(0.5)
        assert caller.call.state == "idle"


# --- the end ------------------------------------------------------------------------------------


def goodbye(text: str = "Goodbye to you", **options: bool) -> Answer:
    async def generate(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content=text, **options)
        yield EndCall(reason="done")

    async def answer(call: Call) -> None:
        routes(call.bridge(name="agent"), generate)

    return answer


async def test_the_call_ends_once_the_goodbye_was_heard(autojump_clock):
    """EndCall waits for the last word, then CallEnded carries its reason."""
    async with open_call(goodbye(), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.call.ended.wait()
        assert caller.now_s == pytest.approx(1.4)
        assert caller.heard == "Goodbye to you"
        assert [e.reason for e in caller.events(CallEnded)] == ["done"]
        assert caller.call.end_reason == "done"
        assert caller.call.state == "closed"


async def test_an_interrupted_goodbye_withdraws_the_end(autojump_clock):
    """The caller had more to say: the call goes on, and can be ended later."""
    async with open_call(goodbye(), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.says("wait", at_s=0.5, takes_s=1.0)
        assert not caller.call.ended.is_set()
        await caller.call.ended.wait()  # the second goodbye is heard
        assert caller.now_s == pytest.approx(1.5 + 1.4)


async def test_an_end_outside_of_any_run_is_withdrawn_too(autojump_clock):
    """What counts is that the speech it waits for was interrupted."""

    async def answer(call: Call) -> None:
        bridge = call.bridge(name="agent")
        call.say("Goodbye to you")
        await trio.testing.wait_all_tasks_blocked()
        bridge.publish(EndCall())

    async with open_call(answer, chars_per_s=10) as caller:
        await caller.at(0.5)
        caller.publish(UserStartedSpeaking())
        await caller.at(60)
        assert not caller.call.ended.is_set()
        caller.publish(EndCall())
        await caller.call.ended.wait()
        assert caller.now_s == 60


async def test_a_second_end_while_one_waits_changes_nothing(autojump_clock):
    """The first reason stands."""
    async with open_call(goodbye(), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        caller.publish(EndCall(reason="again"))
        await caller.call.ended.wait()
        assert caller.call.end_reason == "done"


async def test_a_goodbye_without_end_is_bounded(autojump_clock):
    """After half a minute the call ends although an agent still works on an answer."""

    async def generate(message: Message) -> AsyncIterator[object]:
        yield EndCall()
        await trio.sleep(1000)

    async def answer(call: Call) -> None:
        routes(call.bridge(name="agent"), generate)

    async with open_call(answer) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.call.ended.wait()
        assert caller.now_s == pytest.approx(30)


@pytest.mark.parametrize("audio", [True, False], ids=["audio", "text"])
async def test_a_goodbye_that_is_paused_is_heard_later(audio, autojump_clock):
    """The half minute stands still with the pause, and goes on after it."""

    async def generate(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="Good")
        yield EndCall(reason="done")
        await trio.sleep(0.5)
        yield AgentResponse(content="bye to you")

    async def answer(call: Call) -> None:
        routes(call.bridge(name="agent"), generate)

    async with open_call(answer, chars_per_s=10, audio=audio) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.2)
        caller.call.handle.pause()
        await caller.at(300)
        assert not caller.call.ended.is_set()
        caller.call.handle.resume()
        await caller.call.ended.wait()
        assert caller.heard == "Goodbye to you"
        assert caller.now_s < 302
        assert caller.call.end_reason == "done"


async def test_a_goodbye_over_a_lost_connection_waits_for_it(autojump_clock):
    """Nothing can be heard without a connection, so that time does not count."""
    async with open_call(goodbye(), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        caller.call.hold_speech("connection")
        await caller.at(100)
        caller.call.release_speech("connection")
        await caller.call.ended.wait()
        assert caller.now_s == pytest.approx(100.9)
        assert caller.heard == "Goodbye to you"


async def test_pauses_are_left_out_of_the_half_minute(autojump_clock):
    """What was waited before a pause counts, and so does what is waited after it."""

    async def generate(message: Message) -> AsyncIterator[object]:
        yield EndCall()
        await trio.sleep(1000)

    async def answer(call: Call) -> None:
        routes(call.bridge(name="agent"), generate)

    async with open_call(answer) as caller:
        caller.publish(UserStoppedSpeaking())
        for at_s in (10, 20):
            await caller.at(at_s)
            caller.call.handle.pause()
            await trio.sleep(5)
            caller.call.handle.resume()
        await caller.call.ended.wait()
        assert caller.now_s == pytest.approx(30 + 2 * 5)


async def test_end_in_mid_speech(autojump_clock):
    """Everything stops in the step of end(); it may be called again, and inside CallEnded."""

    async def answer(call: Call) -> None:
        bridge = call.bridge(name="agent")
        routes(bridge, says("One two three four"))
        bridge.on(CallEnded).map(lambda m: call.end("again"))

    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.0)
        with trio.testing.assert_no_checkpoints():
            caller.call.end("hangup")
            caller.call.end("again")
            assert caller.call.ended.is_set()
        assert caller.heard == "One two"
        assert [e.reason for e in caller.events(CallEnded)] == ["hangup"]
        kinds = [type(item.event) for item in caller.received]
        assert kinds.index(CallEnded) < kinds.index(StateChanged, kinds.index(CallEnded))
        caller.publish(UserStoppedSpeaking())
        caller.publish(AgentResponse(content="from beyond"))
        await caller.at(10)
        assert caller.heard == "One two"
        assert "from beyond" not in [e.content for e in caller.events(AgentResponse)]


async def test_a_call_leaves_no_task_behind(autojump_clock):
    """Leaving the block ends thinking, speaking, waiting and the answer itself."""

    async def generate(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="One two three four")
        yield EndCall()
        await trio.sleep(1000)

    async def answer(call: Call) -> None:
        routes(call.bridge(name="agent"), generate)
        call.say("Hello there")
        await trio.sleep_forever()

    before = living_tasks()
    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        assert living_tasks() > before
    assert living_tasks() == before
    assert caller.call.ended.is_set()
    assert caller.call.state == "closed"
    assert [e.reason for e in caller.events(CallEnded)] == ["ended"]
    outcomes = {e.outcome for e in caller.events(AgentGenerationComplete)}
    assert outcomes == {"disconnected"}


# --- failures ------------------------------------------------------------------------------------


async def test_a_failing_stage_leaves_the_call_working(autojump_clock):
    """It is told with its route and stage, never with what was said; the next turn works."""
    tries = iter([True, False])

    async def generate(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="Well. ")
        if next(tries):
            raise ValueError("secret words")
        yield AgentResponse(content="Yes.")

    async def answer(call: Call) -> None:
        routes(call.bridge(name="agent"), generate)

    async with open_call(answer, chars_per_s=10, expect_errors=ValueError) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        (error,) = caller.events(AgentError)
        assert error.message == "ValueError in .stream(generate)"
        assert error.stage == ".stream(generate)"
        assert error.route.startswith("bridge.on(UserStoppedSpeaking")
        assert "secret" not in repr(error)
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.heard == "Well.\nWell. Yes."
        assert [e.outcome for e in caller.events(AgentGenerationComplete)] == [
            "failed",
            "completed",
        ]


@pytest.mark.parametrize("kind", ["sync", "async", "two steps"])
async def test_a_failing_route_on_errors_does_not_go_round(autojump_clock, kind):
    """A route on AgentError that fails itself is told once, not for ever."""
    runs = 0

    def fail(message: Message) -> None:
        nonlocal runs
        runs += 1
        raise RuntimeError("again")

    async def fail_later(message: Message) -> None:
        await trio.sleep(0.01)
        fail(message)

    async def pass_on(message: Message) -> AsyncIterator[object]:
        yield DTMFInput(button="9")

    async def answer(call: Call) -> None:
        bridge = call.bridge(name="agent")
        bridge.on(DTMFInput, button="1").map(fail)
        if kind == "two steps":
            bridge.on(AgentError).stream(pass_on).broadcast()
            bridge.on(DTMFInput, button="9").map(fail)
        else:
            bridge.on(AgentError).map(fail if kind == "sync" else fail_later)

    async with open_call(answer, expect_errors=RuntimeError) as caller:
        caller.publish(DTMFInput(button="1"))
        await caller.at(5)
        assert len(caller.events(AgentError)) == 1
        assert runs == 2


# --- memory --------------------------------------------------------------------------------------


async def test_the_call_remembers_by_itself(autojump_clock):
    """Final transcripts and tools are remembered without any route; interim ones are not."""

    async def answer(call: Call) -> None:
        bridge = call.bridge(name="agent")
        bridge.publish(ToolCall(name="look", id="7"))
        bridge.publish(ToolResult(name="look", id="7", content="found"))

    async with open_call(answer) as caller:
        caller.publish(UserTranscriptionReceived(content="lat", final=False))
        caller.publish(UserTranscriptionReceived(content="latte"))
        assert [e.role for e in caller.call.history] == ["tool", "user"]
        assert caller.call.history.entries[1].content == "latte"


async def test_audio_is_not_told_as_an_event(autojump_clock):
    """Frames have a way of their own; a call knows its rates and whether it has audio."""
    async with open_call(two_agents(says("x"))) as caller:
        caller.publish(UserAudio(pcm=bytes(640)))
        assert not caller.events(UserAudio)
        assert (caller.call.audio, caller.call.output_rate_hz) == (True, 1000)
        assert caller.call.is_agent("front")
        assert not caller.call.is_agent("voice")


async def test_a_call_ends_from_the_depth_of_a_loop(autojump_clock):
    """A stage that ends the call where nothing may be published any more ends it all the same."""

    async def answer(call: Call) -> None:
        def deeper(message: Message) -> DTMFInput | None:
            if len(depths) == 31:  # as deep as it gets
                call.end("enough")
            depths.append(message.id)
            return DTMFInput(button="1")

        depths: list[int] = []
        call.bridge(name="agent").on(DTMFInput).map(deeper).broadcast()

    async with open_call(answer, expect_errors=PublishLoopError) as caller:
        caller.publish(DTMFInput(button="1"))
        assert caller.call.ended.is_set()
