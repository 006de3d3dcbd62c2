"""How a call ends, what becomes of failures, and what the call remembers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
import trio.testing

from bargein import Bridge, Call, Message
from bargein.events import (
    AgentError,
    AgentGenerationComplete,
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

from .agents import Answer, routes, says, two_agents


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
        assert caller.call.current_state == "closed"


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
    assert caller.call.current_state == "closed"
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
