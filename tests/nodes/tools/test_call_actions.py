"""A tool transfers the caller or presses a key, and gets the outcome."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
import trio.testing

from bargein import App, Call, ChatNode
from bargein.events import CallActionCompleted, CallActionFailed, ToolResult
from bargein.llm import TextDelta, ToolCallRequest, Usage
from bargein.testing import open_call
from bargein.tools import Tool, ToolContext, shield, tool

BERLIN = "+4930123456"


class Model:
    """Calls the tool, and says that it has."""

    def __init__(self) -> None:
        self.told = ""

    async def stream(self, messages, *, tools=()):
        if messages[-1]["role"] == "tool":
            self.told = messages[-1]["content"]
            yield TextDelta("So it is.")
        else:
            yield ToolCallRequest(id="a", name="put_through", arguments={}, raw="")
        yield Usage()


class Telephone:
    """A line of which a transfer takes three seconds."""

    audio = False
    sample_rate_hz = 24_000

    def __init__(self) -> None:
        self.results: list[ToolResult] = []
        self.log: list[str] = []

    def send(self, message) -> None:
        if isinstance(message.event, ToolResult):
            self.results.append(message.event)

    def play(self, utterance: int, pcm: bytes) -> None:
        """Play nothing."""

    def clear(self, utterance: int, reason: str) -> None:
        """Drop nothing."""

    async def transfer(self, target_phone_number: str) -> None:
        self.log.append("rings")
        try:
            await trio.sleep(3)
        except trio.Cancelled:
            self.log.append("given up")
            raise
        self.log.append(f"passed on to {target_phone_number}")


def answered_by(body: Tool, model: Model) -> Callable[[Call], object]:
    async def answer(call: Call) -> None:
        call.converse(ChatNode(model, tools=[body]))

    return answer


@tool
async def put_through(context: ToolContext) -> object:
    """Pass the caller on."""
    return await context.transfer(BERLIN)


@pytest.mark.parametrize(
    ("telephone", "told"),
    [
        (True, '{"type":"call.action_completed","action":"transfer"}'),
        (
            False,
            '{"type":"call.action_failed","action":"transfer","cause":"unable",'
            '"reason":"the caller\'s line cannot transfer calls"}',
        ),
    ],
)
async def test_the_model_reads_what_became_of_it(autojump_clock, telephone, told):
    """The outcome may be returned as it is; the line is asked once."""
    model = Model()
    async with open_call(answered_by(put_through, model), telephone=telephone) as caller:
        await caller.says("put me through")
        await caller.quiet()
    assert model.told == told
    assert caller.transferred == ((BERLIN,) if telephone else ())


async def test_a_tool_that_is_cut_gives_the_transfer_up(autojump_clock):
    """A cancelled transfer is stopped in the same step, and its outcome is unknown."""
    line = Telephone()
    async with App(answered_by(put_through, Model())).open_call(line) as call:
        call.handle.send_input("put me through")
        await trio.sleep(1)
        call.handle.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert line.log == ["rings", "given up"]
        assert [result.outcome for result in line.results] == ["effect_unknown"]
        await trio.sleep(5)
    assert line.log == ["rings", "given up"]


async def test_a_tool_that_is_shielded_carries_it_through(autojump_clock):
    """A policy that lets the tool finish lets the transfer finish."""

    @tool(name="put_through", policy=shield(cap_s=10))
    async def surely(context: ToolContext) -> object:
        """Pass the caller on."""
        return await context.transfer(BERLIN)

    line = Telephone()
    async with App(answered_by(surely, Model())).open_call(line) as call:
        call.handle.send_input("put me through")
        await trio.sleep(1)
        call.handle.cancel()
        await trio.sleep(5)
    assert line.log == ["rings", f"passed on to {BERLIN}"]
    assert [result.outcome for result in line.results] == ["completed_after_interrupt"]


async def test_keys_from_a_thread(autojump_clock):
    """A tool that blocks presses keys, too; a key that does not exist is an error in the tool."""

    @tool(name="put_through")
    def press(context: ToolContext) -> str:
        """Press keys."""
        with pytest.raises(ValueError, match=r"send_dtmf\(\) button= is one of 0, 1, .* not 'E'"):
            trio.from_thread.run(context.send_dtmf, "E")
        for button in "42#":
            assert trio.from_thread.run(context.send_dtmf, button) == CallActionCompleted(
                action="dtmf"
            )
        return "pressed"

    model = Model()
    async with open_call(answered_by(press, model), telephone=True) as caller:
        await caller.says("press 42")
        await caller.until(lambda caller: caller.events(ToolResult))
        await caller.quiet()
    assert (caller.pressed, model.told) == (("4", "2", "#"), "pressed")


async def test_a_tool_whose_result_was_given_begins_nothing(autojump_clock):
    """What runs on after its time is over passes nobody on."""
    outcomes = []

    @tool(name="put_through", timeout_s=1.0)
    async def deaf(context: ToolContext) -> None:
        """Take no notice of being cut."""
        with trio.CancelScope(shield=True):
            await trio.sleep(60)
            outcomes.append(await context.transfer(BERLIN))
            outcomes.append(await context.send_dtmf("1"))

    async with open_call(answered_by(deaf, Model()), telephone=True) as caller:
        await caller.says("put me through")
        await trio.sleep(100)
    assert [type(outcome) for outcome in outcomes] == [CallActionFailed, CallActionFailed]
    assert caller.transferred == caller.pressed == ()
