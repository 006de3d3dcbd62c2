"""What an agent asks of the caller's line: to pass the caller on, and to press keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest
import structlog
import trio
import trio.lowlevel
import trio.testing

from bargein import App, Call, CallActionError, CanSendDTMF, CanTransfer, Message
from bargein.events import (
    CallActionCompleted,
    CallActionFailed,
    DTMFOutput,
    TransferCall,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.testing import open_call

BERLIN = "+4930123456"


def test_an_empty_note_is_not_told():
    """A model that gets the outcome as a tool's result reads no note where there is none."""
    plain = CallActionCompleted(action="transfer")
    assert "note" not in plain.model_dump_json()
    assert '"note":"so"' in CallActionCompleted(action="transfer", note="so").model_dump_json()
    assert CallActionCompleted.model_validate_json(plain.model_dump_json()) == plain


class Deaf:
    """A line that can neither transfer nor press keys."""

    audio = False
    sample_rate_hz = 24_000

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, message: Message) -> None:
        self.sent.append(message.event)

    def play(self, utterance: int, pcm: bytes) -> None:
        """Play nothing."""

    def clear(self, utterance: int, reason: str) -> None:
        """Drop nothing."""

    def outcomes(self) -> list[Any]:
        kinds = (CallActionCompleted, CallActionFailed)
        return [event for event in self.sent if isinstance(event, kinds)]


class Telephone(Deaf):
    """A line that does it in a second, or what a test says."""

    def __init__(self, does: Callable[[], Any] | None = None) -> None:
        super().__init__()
        self.does = does or partial(trio.sleep, 1)
        self.began: list[str] = []
        self.done: list[str] = []

    async def transfer(self, target_phone_number: str) -> None:
        await self._do(target_phone_number)

    async def send_dtmf(self, button: str) -> None:
        await self._do(button)

    async def _do(self, what: str) -> None:
        self.began.append(what)
        await self.does()
        self.done.append(what)


async def answer(call: Call) -> None:
    """Say nothing."""


CAUSES = {
    "what asked for it was interrupted": "interrupted",
    "the call is over": "caller_left",
    "the caller's line cannot transfer calls": "unable",
    "the caller's line cannot press keys": "unable",
}


def failed(action: str, reason: str) -> CallActionFailed:
    fields = {"action": action, "reason": reason, "cause": CAUSES.get(reason, "failed")}
    return CallActionFailed.model_validate(fields)


async def fail() -> None:
    raise CallActionError("the number is busy")


async def break_down() -> None:
    raise ConnectionResetError(f"to {BERLIN}")


async def swallow() -> None:
    """Hang, and do not stop when asked to."""
    while True:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:  # noqa: ASYNC103 - that it does not let it pass is the point
            with trio.CancelScope(shield=True):
                await trio.sleep(1000)
            raise


def test_having_the_methods_says_that_it_can():
    """A transport tells by its methods what its line can do."""
    assert isinstance(Telephone(), CanTransfer)
    assert isinstance(Telephone(), CanSendDTMF)
    assert not isinstance(Deaf(), CanTransfer)
    assert not isinstance(Deaf(), CanSendDTMF)


async def test_a_line_that_can_does_it(autojump_clock):
    """Whoever waits gets the outcome when it is done, and everybody is told it once."""
    line = Telephone()
    async with App(answer).open_call(line) as call:
        began_s = trio.current_time()
        assert await call.actions.transfer(BERLIN) == CallActionCompleted(action="transfer")
        assert await call.actions.send_dtmf("#") == CallActionCompleted(action="dtmf")
        assert trio.current_time() - began_s == 2.0
    assert line.done == [BERLIN, "#"]
    assert [type(event) for event in line.sent if event.type != "call.state_changed"][1:5] == [
        TransferCall,
        CallActionCompleted,
        DTMFOutput,
        CallActionCompleted,
    ]


async def test_a_line_that_cannot_says_so(autojump_clock):
    """Nothing is done, and the reason says what the line cannot do."""
    line = Deaf()
    async with App(answer).open_call(line) as call:
        assert await call.actions.transfer(BERLIN) == failed(
            "transfer", "the caller's line cannot transfer calls"
        )
        call.publish(DTMFOutput(button="1"), source="agent")
        assert line.outcomes()[1:] == [failed("dtmf", "the caller's line cannot press keys")]


@pytest.mark.parametrize(
    ("does", "reason", "events"),
    [
        (fail, "the number is busy", ["call_action_failed"]),
        (break_down, "ConnectionResetError", ["transport_failed", "call_action_failed"]),
    ],
)
async def test_a_line_that_fails_gives_its_reason(autojump_clock, does, reason, events):
    """A transport's own error is told in its words, any other by its class; the next one works."""
    line = Telephone(does)
    with structlog.testing.capture_logs() as logs:
        async with App(answer).open_call(line) as call:
            assert await call.actions.transfer(BERLIN) == failed("transfer", reason)
            line.does = trio.lowlevel.checkpoint
            assert (await call.actions.send_dtmf("1")).action == "dtmf"
    assert line.done == ["1"]
    assert [entry["event"] for entry in logs] == events
    texts = [value for entry in logs for key, value in entry.items() if not key.startswith("pii_")]
    assert BERLIN not in str([value for value in texts if value is not True])


@pytest.mark.parametrize(("does", "at_s"), [(trio.sleep_forever, 30.0), (swallow, 31.0)])
async def test_a_line_that_hangs_is_given_up(autojump_clock, does, at_s):
    """After its deadline it counts as not done; one that swallows that delays nobody for long."""
    line = Telephone(does)
    with structlog.testing.capture_logs():
        async with App(answer).open_call(line) as call:
            began_s = trio.current_time()
            outcome = await call.actions.transfer(BERLIN)
            assert outcome == failed("transfer", "it was not done within 30 s")
            assert trio.current_time() - began_s == at_s
            line.does = trio.lowlevel.checkpoint
            assert await call.actions.send_dtmf("1") == CallActionCompleted(action="dtmf")
            assert len(line.outcomes()) == 2


async def test_whoever_is_cancelled_gives_it_up(autojump_clock):
    """The transport is cancelled with whoever waits; what waits behind it goes on."""
    line = Telephone()
    async with App(answer).open_call(line) as call:
        with trio.move_on_after(0.5):
            await call.actions.transfer(BERLIN)
        assert line.outcomes() == [failed("transfer", "it was cancelled")]
        assert await call.actions.send_dtmf("1") == CallActionCompleted(action="dtmf")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call.actions.send_dtmf, "2")
            await trio.sleep(0.1)
            with trio.move_on_after(0.2):  # it waits for the one before, and is never begun
                await call.actions.send_dtmf("3")
    assert (line.began, line.done) == ([BERLIN, "1", "2"], ["1", "2"])
    assert len(line.outcomes()) == 4


async def test_keys_are_pressed_in_order(autojump_clock):
    """What a chain publishes in one step is done one after the other; what is too much, not."""
    line = Telephone()
    async with App(answer).open_call(line) as call:
        for button in "123*" * 17:
            call.publish(DTMFOutput.model_validate({"button": button}), source="agent")
        await trio.sleep(100)
    assert "".join(line.done) == "123*" * 16
    assert [e.reason for e in line.outcomes() if isinstance(e, CallActionFailed)] == (
        ["64 others wait already"] * 4
    )


async def test_a_failure_may_ask_for_something_else(autojump_clock):
    """A route on a failure may publish the next request: each keeps its own answer."""
    line = Telephone(fail)

    async def with_a_key(call: Call) -> None:
        chain = call.bridge(name="agent").on(CallActionFailed, action="transfer")
        chain.map(lambda message: DTMFOutput(button="0")).broadcast()

    async with App(with_a_key).open_call(line) as call:
        await trio.testing.wait_all_tasks_blocked()
        assert await call.actions.transfer(BERLIN) == failed("transfer", "the number is busy")
        await trio.sleep(1)
    assert line.began == [BERLIN, "0"]
    assert [event.action for event in line.outcomes()] == ["transfer", "dtmf"]


@pytest.mark.parametrize("pause_s", [0.0, 0.1], ids=["run ended", "run goes on"])
async def test_what_waits_of_a_cut_answer_is_not_begun(autojump_clock, pause_s):
    """The key in hand is pressed; those behind it are answered, and the next answer's are not."""
    line = Telephone()

    async def dial(message: Message) -> AsyncIterator[object]:
        for button in "123":
            yield DTMFOutput.model_validate({"button": button})
            await trio.sleep(pause_s)
        if pause_s:
            await trio.sleep(60)

    async def menu(call: Call) -> None:
        chain = call.bridge(name="agent").on(UserStoppedSpeaking)
        chain.interrupt_on(UserStartedSpeaking).stream(dial).broadcast()

    async with App(menu).open_call(line) as call:
        await trio.testing.wait_all_tasks_blocked()
        call.publish(UserStoppedSpeaking())
        await trio.sleep(0.5)
        call.publish(UserStartedSpeaking())
        call.publish(DTMFOutput(button="#"), source="app")
        await trio.sleep(5)
        assert line.done == ["1", "#"]
        assert line.outcomes() == [
            CallActionCompleted(action="dtmf"),
            failed("dtmf", "what asked for it was interrupted"),
            failed("dtmf", "what asked for it was interrupted"),
            CallActionCompleted(action="dtmf"),
        ]


async def test_a_call_that_is_over_does_nothing(autojump_clock):
    """Nobody is passed on after the end, and what waited is not begun."""
    line = Telephone()
    async with App(answer).open_call(line) as call:
        for button in "12":
            call.publish(DTMFOutput.model_validate({"button": button}), source="agent")
        await trio.sleep(0.5)
        call.end("hangup")
        await trio.sleep(5)
        assert line.began == ["1"]
        assert await call.actions.transfer(BERLIN) == failed("transfer", "the call is over")
    assert line.began == ["1"]


async def test_a_transfer_may_end_the_call(autojump_clock):
    """A transport that no longer has the caller ends the call, and the reason is told."""
    line = Telephone()
    async with App(answer).open_call(line) as call:

        async def passed_on() -> None:
            await trio.sleep(1)
            call.end("transferred")

        line.does = passed_on
        with trio.move_on_after(5):
            await call.actions.transfer(BERLIN)
        assert call.end_reason == "transferred"


async def test_a_test_has_a_telephone(autojump_clock):
    """The kit's line does it where it is asked to, and keeps what was done."""

    async def menu(call: Call) -> None:
        chain = call.bridge(name="agent").on(UserStoppedSpeaking)
        chain.map(lambda message: DTMFOutput(button="5")).broadcast()

    for telephone, pressed in ((True, ("5",)), (False, ())):
        async with open_call(menu, telephone=telephone) as caller:
            await caller.says("press five for tea")
            await caller.quiet()
            assert await caller.call.actions.transfer(BERLIN)
        assert caller.pressed == pressed
        assert caller.transferred == ((BERLIN,) if telephone else ())
