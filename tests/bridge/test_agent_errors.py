"""A test of an agent fails when the agent does."""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator, Callable

import pytest
import trio

from bargein import Call, Message
from bargein.events import (
    AgentResponse,
    DTMFInput,
    ToolCall,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.testing import Caller, ExpectErrors, open_call
from bargein.tools import ToolRunner, tool


def fails(message: object = None) -> None:
    """Raise what no test below expects."""
    raise KeyError("tea")


async def in_answer(call: Call) -> None:
    """Fail before anything is declared."""
    fails()


async def in_stage(call: Call) -> None:
    """Fail in a stage of each key's chain."""
    call.bridge(name="agent").on(DTMFInput).map(fails).broadcast()


async def in_stream(call: Call) -> None:
    """Fail in the middle of an answer."""

    async def generate(message: Message) -> AsyncIterator[AgentResponse]:
        yield AgentResponse(content="One ")
        fails()

    call.bridge(name="agent").on(DTMFInput).stream(generate).broadcast()


async def in_condition(call: Call) -> None:
    """Fail while it is decided whether a message triggers."""
    call.bridge(name="agent").on(DTMFInput, where=fails).map(lambda m: None)


async def in_handler(call: Call) -> None:
    """Fail in the handler of an interruption."""

    async def generate(message: Message) -> AsyncIterator[AgentResponse]:
        await trio.sleep_forever()
        yield AgentResponse(content="")

    chain = call.bridge(name="agent").on(DTMFInput).interrupt_on(UserStartedSpeaking, handler=fails)
    chain.stream(generate).broadcast()


async def in_sink(call: Call) -> None:
    """Fail where messages leave the chains."""
    call.router.add_sink(fails, DTMFInput)


async def in_async_sink(call: Call) -> None:
    """Fail in a task of the router's."""

    async def sink(message: Message) -> None:
        fails()

    call.router.add_sink(sink, DTMFInput)


async def in_hand_over(call: Call) -> None:
    """Give the floor to nobody."""
    call.bridge(name="agent").on(DTMFInput).map(lambda m: call.hand_over("nobody"))


async def press(caller: Caller) -> None:
    """Press a key, and begin to speak."""
    caller.publish(DTMFInput(button="1"))
    await caller.at(1)
    caller.publish(UserStartedSpeaking())
    await caller.at(2)


WHERE = [in_answer, in_stage, in_stream, in_condition, in_handler, in_sink, in_async_sink]


@pytest.mark.parametrize("answer", WHERE, ids=lambda fn: fn.__name__)
async def test_an_error_of_the_agent_is_raised_at_the_end(autojump_clock, answer):
    """It is the exception itself, with the line that raised it, wherever the agent failed."""
    with pytest.raises(KeyError, match="tea") as caught:
        async with open_call(answer) as caller:
            await press(caller)
    assert caller.now_s == 2
    assert caller.errors == (caught.value,)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "fails"
    assert "expect_errors" in "".join(caught.value.__notes__)


async def test_a_hand_over_to_nobody_is_an_error(autojump_clock):
    """What the framework finds wrong fails the test like what the agent raises."""
    with pytest.raises(LookupError, match="no agent 'nobody'"):
        async with open_call(in_hand_over) as caller:
            await press(caller)


async def test_an_error_of_a_tool_is_raised(autojump_clock):
    """The model is told of it, and so is the test."""

    @tool
    async def brew() -> str:
        """Brew tea."""
        raise KeyError("tea")

    async def answer(call: Call) -> None:
        runner = ToolRunner(call, [brew], source="agent")
        request = ToolCall(name="brew", id="1")
        call.bridge(name="agent").on(DTMFInput).map(lambda m: runner.start(request, run=None))

    with pytest.raises(KeyError, match="tea"):
        async with open_call(answer) as caller:
            await press(caller)


async def test_an_agent_without_errors_fails_no_test(autojump_clock):
    """Nothing is raised, and nothing noted, where all went well."""

    async def answer(call: Call) -> None:
        call.bridge(name="agent").on(DTMFInput).map(
            lambda m: AgentResponse(content="x")
        ).broadcast()

    async with open_call(answer) as caller:
        await press(caller)
    assert caller.errors == ()


@pytest.mark.parametrize(
    "expected",
    [True, KeyError, LookupError, (ValueError, KeyError), "tea", "^KeyError: 'tea'$"],
)
async def test_expected_errors_are_allowed(autojump_clock, expected):
    """All, by class, by one of several classes, or by what the error says."""
    async with open_call(in_stage, expect_errors=expected) as caller:
        await press(caller)
    assert [type(error) for error in caller.errors] == [KeyError]


@pytest.mark.parametrize("expected", [False, ValueError, (ValueError, OSError), (), "coffee"])
async def test_other_errors_than_the_expected_ones_are_raised(autojump_clock, expected):
    """What was expected allows nothing else."""
    with pytest.raises(KeyError):
        async with open_call(in_stage, expect_errors=expected) as caller:
            await press(caller)


@pytest.mark.parametrize(
    "expected", [None, 3, "(", KeyError("tea"), (KeyError, "tea"), BaseException]
)
async def test_what_cannot_be_expected_is_refused(autojump_clock, expected):
    """A value that would allow nothing, or everything, by mistake."""
    with pytest.raises((TypeError, ValueError), match="expect_errors="):
        async with open_call(in_stage, expect_errors=expected):
            raise AssertionError("not reached")


async def test_several_errors_come_as_a_group(autojump_clock):
    """Each that differs is in it once, and says how often it was raised."""

    async def answer(call: Call) -> None:
        bridge = call.bridge(name="agent")
        bridge.on(DTMFInput).map(fails)
        bridge.on(UserStoppedSpeaking).map(lambda m: 1 / 0)

    with pytest.RaisesGroup(KeyError, ZeroDivisionError, match="failed 5 times") as caught:
        async with open_call(answer) as caller:
            for _ in range(3):
                caller.publish(DTMFInput(button="1"))
            for _ in range(2):
                caller.publish(UserStoppedSpeaking())
    assert len(caller.errors) == 5
    assert "raised 2 more times" in caught.value.exceptions[0].__notes__[0]
    assert "raised once more" in caught.value.exceptions[1].__notes__[0]


async def test_a_group_is_allowed_if_each_of_its_errors_is(autojump_clock):
    """A nursery wraps what an agent raises, which is no error of another class."""

    async def answer(call: Call) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail_later)
            raise ValueError("at once")

    async def fail_later() -> None:
        fails()

    async with open_call(answer, expect_errors=(ValueError, KeyError)) as caller:
        await caller.at(1)
    with pytest.raises(ExceptionGroup):
        async with open_call(answer, expect_errors=ValueError) as caller:
            await caller.at(1)


async def find_fault(expect_errors: ExpectErrors) -> None:
    """Fail in the block of a call whose agent fails, too."""
    async with open_call(in_stage, expect_errors=expect_errors) as caller:
        await press(caller)
        raise AssertionError("mine") from ValueError("why")


async def test_what_the_test_finds_wrong_goes_first(autojump_clock):
    """Its own failure is raised, and the agent's is told in its notes, with its lines."""
    with pytest.raises(AssertionError, match="mine") as caught:
        await find_fault(expect_errors=False)
    (note,) = caught.value.__notes__
    assert "KeyError: 'tea'" in note
    assert "in fails" in note
    assert isinstance(caught.value.__cause__, ValueError)


async def test_an_expected_error_is_no_news(autojump_clock):
    """A failure of the test has no notes on what the test allows."""
    with pytest.raises(AssertionError) as caught:
        await find_fault(expect_errors=KeyError)
    assert not hasattr(caught.value, "__notes__")


async def test_a_cancelled_test_fails_of_the_agent(autojump_clock):
    """A limit around the call swallows its own cancellation, and no error."""
    with pytest.RaisesGroup(pytest.RaisesExc(KeyError)):
        with trio.move_on_after(3):
            async with open_call(in_stage) as caller:
                await press(caller)
                await trio.sleep_forever()
    with trio.move_on_after(3) as scope:
        async with open_call(in_stage, expect_errors=True) as caller:
            await trio.sleep_forever()
    assert scope.cancelled_caught


async def test_the_cause_of_an_error_is_kept(autojump_clock):
    """What led to it is shown with it."""

    def fail(message: Message) -> None:
        raise ValueError("shut") from OSError("no water")

    async def answer(call: Call) -> None:
        call.bridge(name="agent").on(DTMFInput).map(fail)

    with pytest.raises(ValueError, match="shut") as caught:
        async with open_call(answer) as caller:
            await press(caller)
    assert isinstance(caught.value.__cause__, OSError)


async def test_an_error_while_the_call_ends_is_raised(autojump_clock):
    """Clean-up is part of the agent."""

    async def answer(call: Call) -> None:
        async def generate(message: Message) -> AsyncIterator[AgentResponse]:
            try:
                await trio.sleep_forever()
            finally:
                fails()
            yield AgentResponse(content="")

        call.bridge(name="agent").on(DTMFInput).stream(generate).broadcast()

    with pytest.raises(KeyError):
        async with open_call(answer) as caller:
            await press(caller)


def says(*texts: str) -> Callable[[Call], object]:
    """Return an agent that says each text in an answer of its own."""

    async def answer(call: Call) -> None:
        for text in texts:
            await call.say(text)

    return answer


async def test_heard_keeps_utterances_apart(autojump_clock):
    """A line break stands between two, instead of blanks; the last is as far as it was heard."""
    async with open_call(says("What can I get you?", "One latte. ", "It takes a while.")) as caller:
        await caller.until(lambda caller: caller.heard.endswith("takes"))
        assert caller.heard == "What can I get you?\nOne latte.\nIt takes"
