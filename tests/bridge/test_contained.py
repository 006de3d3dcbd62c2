"""Whatever code of a user raises ends at most its own work."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from bargein import App, Bridge, Call, CallRequest, Message
from bargein.client import CallOverError, CallRefusedError, open_caller
from bargein.events import (
    AgentError,
    AgentResponse,
    DTMFInput,
    ToolCall,
    ToolResult,
    UserStartedSpeaking,
)
from bargein.routes import CodeExitError, ScopeLeakError
from bargein.server import open_server
from bargein.testing import Caller, SimulatedVoice, open_call
from bargein.tools import ToolRunner, tool

SAMPLE_RATE_HZ = 1000


class Fatal(BaseException):
    """A class of the user's own that is no ``Exception``."""


Raise = Callable[[], None]


def _raises(error: type[BaseException]) -> Raise:
    def fail() -> None:
        raise error("no such option: --tea")

    return fail


EXITS = [SystemExit, GeneratorExit, Fatal]


def in_where(call: Call, fail: Raise) -> None:
    """Where it is decided whether a message triggers."""
    call.bridge(name="bad").on(DTMFInput, where=lambda m: fail()).map(lambda m: None)


def in_sync_stage(call: Call, fail: Raise) -> None:
    """A stage that runs at once."""
    call.bridge(name="bad").on(DTMFInput).map(lambda m: fail()).broadcast()


def in_filter(call: Call, fail: Raise) -> None:
    """A filter that runs at once."""
    call.bridge(name="bad").on(DTMFInput).filter(lambda m: bool(fail())).broadcast()


def in_async_stage(call: Call, fail: Raise) -> None:
    """A stage that waits first."""

    async def stage(message: Message) -> None:
        await trio.sleep(0.1)
        fail()

    call.bridge(name="bad").on(DTMFInput).map(stage).broadcast()


def in_second_stage(call: Call, fail: Raise) -> None:
    """A stage that waits, behind another that has a task of its own."""

    async def generate(message: Message) -> AsyncIterator[int]:
        yield 1

    async def stage(value: int) -> None:
        await trio.sleep(0.1)
        fail()

    call.bridge(name="bad").on(DTMFInput).stream(generate).map(stage).broadcast()


def in_generator(call: Call, fail: Raise) -> None:
    """The middle of an answer."""

    async def generate(message: Message) -> AsyncIterator[AgentResponse]:
        await trio.sleep(0.1)
        yield AgentResponse(content="")
        fail()

    call.bridge(name="bad").on(DTMFInput).stream(generate).broadcast()


def in_nursery(call: Call, fail: Raise) -> None:
    """A task of the user's own, whose nursery wraps the error in a group."""

    async def task() -> None:
        fail()

    async def stage(message: Message) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(task)
            await trio.sleep_forever()

    call.bridge(name="bad").on(DTMFInput).map(stage).broadcast()


def in_clean_up(call: Call, fail: Raise) -> None:
    """The clean-up of a run that is cut."""

    async def generate(message: Message) -> AsyncIterator[AgentResponse]:
        try:
            await trio.sleep_forever()
            yield AgentResponse(content="")
        finally:
            fail()

    chain = call.bridge(name="bad").on(DTMFInput).interrupt_on(UserStartedSpeaking)
    chain.stream(generate).broadcast()


def _sleeper(call: Call, **rule: Any) -> None:
    async def generate(message: Message) -> AsyncIterator[AgentResponse]:
        await trio.sleep_forever()
        yield AgentResponse(content="")

    chain = call.bridge(name="bad").on(DTMFInput).interrupt_on(UserStartedSpeaking, **rule)
    chain.stream(generate).broadcast()


def in_condition(call: Call, fail: Raise) -> None:
    """The condition of an interruption."""
    _sleeper(call, condition=lambda m: bool(fail()))


def in_handler(call: Call, fail: Raise) -> None:
    """The handler of an interruption."""
    _sleeper(call, handler=lambda: fail())


def in_async_handler(call: Call, fail: Raise) -> None:
    """The handler of an interruption, which waits first."""

    async def handler() -> None:
        await trio.sleep(0.1)
        fail()

    _sleeper(call, handler=handler)


def in_sink(call: Call, fail: Raise) -> None:
    """A function that takes messages."""
    call.router.add_sink(lambda m: fail(), DTMFInput)


def in_async_sink(call: Call, fail: Raise) -> None:
    """A task that takes messages."""

    async def sink(message: Message) -> None:
        fail()

    call.router.add_sink(sink, DTMFInput)


def in_observer(call: Call, fail: Raise) -> None:
    """A function that is shown messages before the chains are."""
    call.router.observe(DTMFInput, lambda m: fail())


def in_alarm(call: Call, fail: Raise) -> None:
    """A function that is called at its time."""
    call.router.call_at("tea", trio.current_time() + 0.5, fail)


def in_attached(call: Call, fail: Raise) -> None:
    """A node that is told of its place in the call, which it gets in mid-call."""

    class Node:
        def attached(self, bridge: Bridge) -> None:
            fail()

    call.bridge(name="host").on(DTMFInput).map(lambda m: call.bridge(Node(), name="bad") and None)


def _tool(call: Call, fail: Raise, body: Any) -> None:
    runner = ToolRunner(call, [tool(body)], source="bad")
    request = ToolCall(name=body.__name__, id="1")
    call.bridge(name="bad").on(DTMFInput).map(lambda m: runner.start(request, run=None))


def in_async_tool(call: Call, fail: Raise) -> None:
    """A tool on the event loop."""

    async def brew() -> str:
        """Brew tea."""
        fail()
        return ""

    _tool(call, fail, brew)


def in_threaded_tool(call: Call, fail: Raise) -> None:
    """A tool in a thread."""

    def brew() -> str:
        """Brew tea."""
        fail()
        return ""

    _tool(call, fail, brew)


PLACES = [
    in_where, in_sync_stage, in_filter, in_async_stage, in_second_stage, in_generator, in_nursery,
    in_clean_up, in_condition, in_handler, in_async_handler, in_sink, in_async_sink, in_observer,
    in_alarm, in_async_tool, in_attached,
]  # fmt: skip


async def _lives_on(fail_in: Callable[[Call], None]) -> Caller:
    """Have a call in which something fails; the next turn must work all the same."""

    async def answer(call: Call) -> None:
        good = call.bridge(name="good")
        good.on(UserStartedSpeaking).map(lambda m: AgentResponse(content="Yes?")).broadcast()
        fail_in(call)

    async with open_call(answer, expect_errors=True) as caller:
        caller.publish(DTMFInput(button="1"))
        await caller.at(1)
        caller.publish(UserStartedSpeaking())
        await caller.at(3)
        assert not caller.call.ended.is_set()
        assert any(event.content == "Yes?" for event in caller.events(AgentResponse))
    return caller


def _is_told(error: Exception, kind: type[BaseException]) -> bool:
    while isinstance(error, ExceptionGroup):
        (error,) = error.exceptions
    # A nursery wraps a GeneratorExit that comes of a leak in the same way as one that was raised.
    leaks = kind is GeneratorExit and isinstance(error, ScopeLeakError)
    return leaks or (isinstance(error, CodeExitError) and isinstance(error.error, kind))


@pytest.mark.parametrize("kind", EXITS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
async def test_it_ends_its_own_work_alone(
    autojump_clock: None, place: Callable[[Call, Raise], None], kind: type[BaseException]
) -> None:
    """The call lives, the next turn works, and the error is told once, wherever it is raised."""
    caller = await _lives_on(lambda call: place(call, _raises(kind)))
    if place is in_clean_up and kind is GeneratorExit:
        return  # Python takes it for the end of the generator
    assert [_is_told(error, kind) for error in caller.errors] == [True]


async def test_answering_a_call_may_not_end_the_server(autojump_clock: None) -> None:
    """An app that exits while it answers ends that call, and tells why."""

    async def answer(call: Call) -> None:
        raise SystemExit(2)

    async with open_call(answer, expect_errors=True) as caller:
        await caller.at(1)
        assert caller.call.end_reason == "agent_error"
    assert [_is_told(error, SystemExit) for error in caller.errors] == [True]


async def test_a_tool_that_exits_tells_the_model(autojump_clock: None) -> None:
    """Its result is an error, as of any tool that raises."""
    caller = await _lives_on(lambda call: in_async_tool(call, _raises(SystemExit)))
    (result,) = caller.events(ToolResult)
    assert result.error
    assert "SystemExit" in result.content


def in_stage_with_a_thread(call: Call, fail: Raise) -> None:
    """A stage that waits for a thread."""

    async def stage(message: Message) -> None:
        await trio.to_thread.run_sync(fail)

    call.bridge(name="bad").on(DTMFInput).map(stage).broadcast()


def in_channel_with_a_thread(call: Call, fail: Raise) -> None:
    """A safe channel, which raises some errors of its tasks anew."""

    @trio.as_safe_channel
    async def generate(message: Message) -> AsyncGenerator[AgentResponse]:
        await trio.to_thread.run_sync(fail)
        yield AgentResponse(content="")

    call.bridge(name="bad").on(DTMFInput).stream(generate).broadcast()


THREADED = [in_threaded_tool, in_stage_with_a_thread, in_channel_with_a_thread]


@pytest.mark.parametrize("kind", [*EXITS, KeyboardInterrupt], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("place", THREADED, ids=lambda p: p.__name__)
async def test_what_a_thread_raises_is_an_error(
    place: Callable[[Call, Raise], None], kind: type[BaseException]
) -> None:
    """No thread gets a Ctrl+C, so even a ``KeyboardInterrupt`` of one is told like any error."""

    async def answer(call: Call) -> None:
        place(call, _raises(kind))

    with trio.fail_after(30):
        async with open_call(answer, expect_errors=True) as caller:
            caller.publish(DTMFInput(button="1"))
            failed = trio.Event()
            caller.call.on_error.append(lambda error: failed.set())
            await failed.wait()
            await trio.testing.wait_all_tasks_blocked()
            assert not caller.call.ended.is_set()
    assert [_is_told(error, kind) for error in caller.errors] == [True]


async def test_ctrl_c_passes(autojump_clock: None) -> None:
    """What is raised on the main thread outside of any thread of trio's may be a real Ctrl+C."""
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the block is the call
        async with open_call(_stops, expect_errors=True) as caller:
            caller.publish(DTMFInput(button="1"))
            await caller.at(1)


async def _stops(call: Call) -> None:
    in_async_stage(call, _raises(KeyboardInterrupt))


async def test_ctrl_c_passes_a_safe_channel(autojump_clock: None) -> None:
    """A channel that raises a ``KeyboardInterrupt`` anew does not make an error of it."""
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the block is the call
        async with open_call(_stops_in_a_channel, expect_errors=True) as caller:
            caller.publish(DTMFInput(button="1"))
            await caller.at(1)


async def _stops_in_a_channel(call: Call) -> None:
    @trio.as_safe_channel
    async def generate(message: Message) -> AsyncGenerator[AgentResponse]:
        await trio.sleep(0.1)
        raise KeyboardInterrupt
        yield AgentResponse(content="")

    call.bridge(name="bad").on(DTMFInput).stream(generate).broadcast()


# --- what stands around a call


class Line:
    """A transport whose methods raise: those that are named, whenever they are called."""

    audio, sample_rate_hz = True, SAMPLE_RATE_HZ

    def __init__(self, bad: str, fail: Raise) -> None:
        self.bad, self.fail = bad, fail
        self.called: list[str] = []
        self.events: list[Any] = []

    def _do(self, method: str) -> None:
        self.called.append(method)
        if method == self.bad:
            self.fail()

    def send(self, message: Message) -> None:
        """Keep an event."""
        self.events.append(message.event)
        self._do("send")

    def play(self, utterance: int, pcm: bytes) -> None:
        """Play."""
        self._do("play")

    def clear(self, utterance: int, reason: str) -> None:
        """Drop."""
        self._do("clear")

    def hold(self, on: bool) -> None:
        """Stand still."""
        self._do("hold")

    async def transfer(self, target_phone_number: str) -> None:
        """Pass on."""
        await trio.lowlevel.checkpoint()
        self._do("transfer")

    async def send_dtmf(self, button: str) -> None:
        """Press."""
        await trio.lowlevel.checkpoint()
        self._do("send_dtmf")


@pytest.mark.parametrize("kind", EXITS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("bad", ["send", "play", "clear", "hold", "transfer", "send_dtmf"])
async def test_a_transport_and_its_line(
    autojump_clock: None, bad: str, kind: type[BaseException]
) -> None:
    """Whatever a transport raises, the call speaks on, holds, is cut, and asks the line."""
    outcomes: list[Any] = []

    async def answer(call: Call) -> None:
        chain = call.bridge(name="good").on(DTMFInput).interrupt_on(UserStartedSpeaking)
        chain.map(lambda m: AgentResponse(content="A long answer to a key.")).broadcast()

    line = Line(bad, _raises(kind))
    async with App(answer, speech=SimulatedVoice(15.0)).open_call(line) as call:
        call.publish(DTMFInput(button="1"))
        await trio.sleep(0.5)
        call.hold_speech("test")
        await trio.sleep(0.5)
        call.release_speech("test")
        call.publish(UserStartedSpeaking())
        outcomes.append(await call.actions.transfer("+1"))
        outcomes.append(await call.actions.send_dtmf("1"))
        call.publish(DTMFInput(button="1"))
        await trio.sleep(5)
        assert not call.ended.is_set()
        assert len([e for e in line.events if isinstance(e, AgentResponse)]) == 2
    assert bad in line.called
    failed = [type(outcome).__name__ == "CallActionFailed" for outcome in outcomes]
    assert failed == [bad == "transfer", bad == "send_dtmf"]


@pytest.mark.parametrize("kind", EXITS, ids=lambda kind: kind.__name__)
async def test_a_transport_that_is_told_of_its_call(
    autojump_clock: None, kind: type[BaseException]
) -> None:
    """One that exits opens no call, which is an error like any; the app's next call is answered."""

    class Attached(Line):
        def attached(self, call: Call) -> None:
            self._do("attached")

    async def answer(call: Call) -> None:
        call.bridge(name="good").on(DTMFInput).map(lambda m: AgentResponse(content="Yes?"))

    app = App(answer)
    with pytest.raises(Exception) as caught:
        async with app.open_call(Attached("attached", _raises(kind))):
            pytest.fail("the call is open")
    assert _is_told(caught.value, kind)
    async with app.open_call(Attached("", _raises(kind))) as call:
        assert not call.ended.is_set()


@pytest.mark.parametrize("kind", EXITS, ids=lambda kind: kind.__name__)
async def test_an_operator(autojump_clock: None, kind: type[BaseException]) -> None:
    """An operator's function that exits denies its tool, and answers the next question anew."""
    verdicts: list[str] = []

    async def answer(call: Call) -> None:
        for id in ("1", "2"):
            verdicts.append(await call.permissions.ask(id, "brew", {}, None, by="operator"))

    def operator(call: Call, question: Any) -> bool:
        if question.id == "1":
            _raises(kind)()
        return True

    app = App(answer, operator=operator)
    async with open_call(app, expect_errors=True) as caller:
        await caller.at(1)
        assert not caller.call.ended.is_set()
    assert verdicts == ["denied", "allowed"]


@pytest.mark.parametrize("kind", EXITS, ids=lambda kind: kind.__name__)
async def test_a_listener_of_errors(autojump_clock: None, kind: type[BaseException]) -> None:
    """A function of ``call.on_error`` that exits keeps no other from hearing of the error."""
    caller = await _lives_on(lambda call: in_error_listener(call, _raises(kind)))
    assert [type(error) for error in caller.errors] == [LookupError]


def in_error_listener(call: Call, fail: Raise) -> None:
    """A function that is told of errors, before the one of the test is."""

    def stage(message: Message) -> None:
        raise LookupError("no tea")

    call.on_error.insert(0, lambda error: fail())
    call.bridge(name="bad").on(DTMFInput).map(stage).broadcast()


@pytest.mark.parametrize("kind", EXITS, ids=lambda kind: kind.__name__)
async def test_a_listener_of_changes(autojump_clock: None, kind: type[BaseException]) -> None:
    """A function of ``call.on_touch`` that exits is told, and all else goes on."""
    caller = await _lives_on(lambda call: call.on_touch.append(_raises(kind)))
    assert caller.errors
    assert all(_is_told(error, kind) for error in caller.errors)


@pytest.mark.parametrize("kind", EXITS, ids=lambda kind: kind.__name__)
async def test_a_watcher_of_events(autojump_clock: None, kind: type[BaseException]) -> None:
    """A task of a stage that watches the call and exits ends its run alone."""

    def watch(call: Call) -> None:
        async def stage(message: Message) -> None:
            async for _ in call.handle.subscribe():
                _raises(kind)()

        call.bridge(name="bad").on(DTMFInput).map(stage).broadcast()

    caller = await _lives_on(watch)
    assert [_is_told(error, kind) for error in caller.errors] == [True]


class Stores:
    """A store of conversations that raises where it is told to."""

    def __init__(self, bad: str, fail: Raise) -> None:
        self.bad, self.fail = bad, fail
        self.id, self.entries = "ada", ()
        self.on_trouble: Any = None

    def _do(self, place: str) -> None:
        if place == self.bad:
            self.fail()

    @asynccontextmanager
    async def open_conversation(self, id: str) -> AsyncIterator[Stores]:
        """Open the only one."""
        await trio.lowlevel.checkpoint()
        self._do("open")
        yield self
        self._do("close")

    def write(self, index: int, entry: Any) -> None:
        """Save nothing."""
        self._do("write")

    async def list(self) -> list[Any]:
        """Nobody asks."""
        return []

    async def delete(self, id: str) -> None:
        """Nobody asks."""


SERVED = ["open", "write", "close", "name", "answer", "attach"]


@pytest.mark.parametrize("kind", EXITS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("bad", SERVED)
async def test_a_server_outlives_the_code_around_a_call(
    bad: str, kind: type[BaseException]
) -> None:
    """Store, speech, answer and rules of an app end the call of one caller, and not the server."""
    fail = _raises(kind)
    first: list[Any] = []

    def do(place: str) -> None:
        if place == bad and not first:
            first.append(place)
            fail()

    async def answer(call: Call) -> None:
        do("answer")
        good = call.bridge(name="good")
        good.on(DTMFInput).map(lambda m: AgentResponse(content="Yes?")).broadcast()

    class Voice(SimulatedVoice):
        def attach(self, call: Call) -> None:
            do("attach")
            super().attach(call)

    def may_name(request: CallRequest) -> bool:
        do("name")
        return True

    app = App(
        answer,
        speech=Voice(15.0),
        conversations=Stores(bad, lambda: do(bad)),
        callers_name_conversations=may_name,
    )
    with trio.fail_after(10):
        async with open_server(app, port=0) as server:
            url = f"ws://127.0.0.1:{server.port}/ws"
            with contextlib.suppress(CallRefusedError, CallOverError, ConnectionError):
                async with open_caller(url, conversation="ada", reconnect=False) as caller:
                    caller.write("Some tea, please.")
                    while bad == "write" and not first:  # noqa: ASYNC110 - no event
                        await trio.sleep(0.01)
            while server.calls:  # noqa: ASYNC110 - a real server, whose calls set no events
                await trio.sleep(0.01)
            async with open_caller(url, conversation="ada", reconnect=False) as caller:
                assert caller.hello.call
    assert first == [bad]


class Unspeakable(Exception):
    """An error whose text cannot be told."""

    def __str__(self) -> str:
        raise SystemExit(2)

    @property
    def safe_text(self) -> str:
        """Raise."""
        raise SystemExit(3)


async def test_an_error_whose_text_raises_ends_its_own_turn(autojump_clock):
    """What ``__str__`` of an app's error raises is contained as well; the class is told."""

    async def answer(call: Call) -> None:
        async def generate(message: Message) -> AsyncIterator[AgentResponse]:
            if message.event.button == "1":
                raise Unspeakable
            yield AgentResponse(content="Yes?")

        call.bridge(name="agent").on(DTMFInput).stream(generate).broadcast()

    async with open_call(answer, expect_errors=True) as caller:
        caller.publish(DTMFInput(button="1"))
        await trio.sleep(1)
        (told,) = caller.events(AgentError)
        assert "Unspeakable" in told.message
        caller.publish(DTMFInput(button="2"))
        await caller.quiet()
        assert caller.heard == "Yes?"
