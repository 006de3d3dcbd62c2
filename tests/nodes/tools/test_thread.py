"""Plain functions as tools in real threads."""

import threading
import time

import pytest
import trio
from structlog.testing import capture_logs

from bargein.events import EndCall
from bargein.tools import ToolContext, tool

LIMIT_S = 30.0


class Signal:
    """Set from a thread, waited for on the event loop."""

    def __init__(self):
        self._event = trio.Event()
        self._loop = trio.lowlevel.current_trio_token()

    def set(self):
        self._loop.run_sync_soon(self._event.set)

    async def wait(self):
        await self._event.wait()


async def test_a_thread_that_polls_stops_at_once(open_bench):
    """The token tells a thread to stop; what it then raises is not the tool's failure."""
    begun = Signal()

    @tool
    def work(context: ToolContext) -> None:
        begun.set()
        while True:
            context.token.throw_if_requested()
            time.sleep(0.01)

    with trio.fail_after(LIMIT_S):
        async with open_bench(work) as bench:
            running = bench.start("work")
            await begun.wait()
            with capture_logs() as logs:
                assert running.interrupt("barge_in") is None
                await running.done.wait()
            assert running.outcome == "effect_unknown"
            assert running.final.content.startswith("It was cut off")
            assert [line["event"] for line in logs if line["log_level"] == "warning"] == []


async def test_a_thread_cannot_swallow_a_stop(open_bench):
    """A loop that catches every Exception of its steps ends all the same."""
    begun, steps = Signal(), []

    @tool
    def work(context: ToolContext) -> str:
        begun.set()
        until_s = time.monotonic() + 5.0
        while time.monotonic() < until_s:
            try:
                steps.append(1)
                context.token.throw_if_requested()
                time.sleep(0.01)
            except Exception:  # noqa: BLE001 - what people write
                steps.append("swallowed")
        return "went on"

    with trio.fail_after(LIMIT_S):
        async with open_bench(work) as bench:
            running = bench.start("work")
            await begun.wait()
            with capture_logs() as logs:
                running.interrupt("cancel")
                await running.done.wait()
            assert running.outcome == "effect_unknown"
            assert "swallowed" not in steps
            assert [line["event"] for line in logs if line["log_level"] == "warning"] == []


async def test_tasks_of_a_tool_that_poll_stop_without_a_fault(open_bench):
    """Interrupted out of several tasks of one tool is its end, and no error is told."""

    @tool
    async def work(context: ToolContext) -> None:
        async def poll() -> None:
            with trio.CancelScope(shield=True):
                while True:
                    context.token.throw_if_requested()
                    await trio.sleep(0.01)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll)
            nursery.start_soon(poll)

    with trio.fail_after(LIMIT_S):
        async with open_bench(work) as bench:
            running = await bench.begin("work")
            with capture_logs() as logs:
                running.interrupt("cancel")
                await running.done.wait()
            assert running.outcome == "effect_unknown"
            assert [line["event"] for line in logs if line["log_level"] == "warning"] == []


async def test_a_thread_that_returns_soon_has_completed(open_bench):
    """The result of a thread that ends right after it was told to stop still counts."""
    begun = Signal()

    @tool
    def work(context: ToolContext) -> str:
        begun.set()
        while not context.token.is_requested:
            time.sleep(0.01)
        return "saved what there was"

    with trio.fail_after(LIMIT_S):
        async with open_bench(work) as bench:
            running = bench.start("work")
            await begun.wait()
            running.interrupt("cancel")
            await running.done.wait()
            assert running.outcome == "completed_after_interrupt"
            assert running.final.content.startswith("saved what there was\n")


async def test_a_deaf_thread_is_left_alone(open_bench):
    """After a while the tool is over without it; that is warned of, and its result dropped."""
    begun, release = Signal(), threading.Event()

    @tool
    def deaf() -> str:
        begun.set()
        release.wait(LIMIT_S)
        return "too late"

    with trio.fail_after(LIMIT_S), capture_logs() as logs:
        async with open_bench(deaf) as bench:
            running = bench.start("deaf")
            await begun.wait()
            running.interrupt("cancel")
            await running.done.wait()
            assert running.outcome == "effect_unknown"
            assert "tool_thread_abandoned" in [line["event"] for line in logs]
            release.set()
            # A line in the log is nothing to wait for.
            while "abandoned_thread_ended" not in [line["event"] for line in logs]:  # noqa: ASYNC110
                await trio.sleep(0.01)
            assert bench.results() == [("c1", "effect_unknown")]


async def test_the_end_of_the_call_does_not_wait_for_ever(open_bench):
    """A deaf thread delays the end of its call only for a while."""
    begun, release = Signal(), threading.Event()

    @tool
    def deaf() -> None:
        begun.set()
        release.wait(LIMIT_S)

    try:
        with trio.fail_after(LIMIT_S / 2):
            async with open_bench(deaf) as bench:
                running = bench.start("deaf")
                await begun.wait()
            assert running.outcome == "effect_unknown"
    finally:
        release.set()


async def test_what_waits_for_a_thread_has_not_started(open_bench):
    """At most 64 tools have a thread; one that is cut while it waits for one never runs."""
    begun, release, ran = [], threading.Event(), []

    @tool
    def first() -> None:
        begun.append(1)
        release.wait(LIMIT_S)

    @tool
    def second() -> None:
        ran.append(1)

    with trio.fail_after(LIMIT_S):
        async with open_bench(first, second) as bench:
            working = [bench.start("first") for _ in range(64)]
            while len(begun) < 64:  # noqa: ASYNC110 - a thread's start is no event of ours
                await trio.sleep(0.01)
            waits = bench.start("second")
            while waits.started_at_s is None:
                await trio.lowlevel.checkpoint()
            await trio.sleep(0.05)
            waits.interrupt("cancel")
            await waits.done.wait()
            assert waits.outcome == "not_started"
            release.set()
            for one in working:
                assert (await one.result()).outcome == "completed"
            assert not ran


async def test_an_error_in_a_thread_is_the_result(open_bench):
    """The model gets the class and message of the exception, as for an async tool."""

    @tool
    def fail() -> None:
        raise LookupError("no such row")

    async with open_bench(fail, expect_errors=LookupError) as bench:
        result = await bench.start("fail").result()
        assert (result.error, result.content) == (True, "LookupError")


@pytest.mark.parametrize(
    ("act", "verb"),
    [
        (lambda call: call.publish(EndCall()), "publish"),
        (lambda call: call.hand_over("desk"), "publish"),
        (lambda call: call.say("One moment."), "say"),
        (lambda call: call.end("done"), "end"),
    ],
)
async def test_a_thread_that_acts_on_the_call_is_told_how(open_bench, act, verb):
    """Events belong to the event loop: a thread that publishes one itself does nothing at all."""

    @tool
    def work(context: ToolContext) -> None:
        act(context.call)

    with trio.fail_after(LIMIT_S):
        how = rf"write trio\.from_thread\.run_sync\(call\.{verb}, "
        async with open_bench(work, expect_errors=how) as bench:
            assert (await bench.start("work").result()).content == "RuntimeError"
            assert not bench.call.ended.is_set()


async def test_a_thread_acts_on_the_call(open_bench):
    """The way that the error names."""

    @tool
    def work(context: ToolContext) -> str:
        trio.from_thread.run_sync(context.call.publish, EndCall())
        trio.from_thread.run(context.say, "Goodbye.")
        return "done"

    with trio.fail_after(LIMIT_S):
        async with open_bench(work) as bench:
            assert (await bench.start("work").result()).content == "done"


async def test_a_thread_can_stop_its_own_tool(open_bench):
    """Asking the token from the thread cuts the tool on the event loop."""

    @tool
    def work(context: ToolContext) -> None:
        context.token.request()
        time.sleep(0.05)

    with trio.fail_after(LIMIT_S):
        async with open_bench(work) as bench:
            running = bench.start("work")
            await running.done.wait()
            assert running.outcome == "completed_after_interrupt"


@pytest.mark.parametrize("policy", ["cancel", "detach"])
async def test_a_thread_goes_on_in_the_background(open_bench, policy):
    """A thread that moves to the background can see it, and gives its result later."""
    begun = Signal()

    @tool(policy=policy)
    def work(context: ToolContext) -> str:
        begun.set()
        while not context.token.is_background_requested:
            time.sleep(0.01)
        return "worked"

    with trio.fail_after(LIMIT_S):
        async with open_bench(work) as bench:
            running = bench.start("work")
            await begun.wait()
            assert running.to_background()
            assert (await running.result()).outcome == "backgrounded"
            await running.done.wait()
            assert running.final.content == "worked"


@pytest.mark.parametrize(
    ("name", "argument"),
    [("say", "One moment."), ("ask", "Which?"), ("transfer", "+4930123456"), ("send_dtmf", "5")],
)
async def test_an_async_method_of_the_context_is_an_error_in_a_thread(open_bench, name, argument):
    """A sync tool cannot await it: it would say nothing, and nobody would know."""

    @tool
    def work(context: ToolContext) -> None:
        getattr(context, name)(argument)

    with trio.fail_after(LIMIT_S):
        how = rf"context\.{name}\(\) was called in a thread.*run\(context\.{name}, \.\.\.\)$"
        async with open_bench(work, expect_errors=how) as bench:
            assert (await bench.start("work").result()).content == "RuntimeError"
