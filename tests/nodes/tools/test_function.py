"""Tools made of functions."""

import threading
import time

import pytest
import trio
from structlog.testing import capture_logs

from bargein import ChatNode
from bargein.events import ToolResult
from bargein.llm import ToolCallRequest
from bargein.testing import ScriptedModel, calls, open_call
from bargein.tools import FunctionTool, ToolContext, ToolDefinitionError, finish, shield, tool
from tests.nodes.answers_by_script import answer_with


def test_bare_and_with_options():
    """The decorator works with and without parentheses, with a name and without."""

    @tool
    def one(cups: int) -> str:
        """Brew."""
        return f"{cups} cups"

    @tool(policy=finish(2), timeout_s=3, permission="ask", on_duplicate="join", read_only=True)
    def two() -> None:
        pass

    @tool("three")
    def third() -> None:
        pass

    assert isinstance(one, FunctionTool)
    assert (one.name, one.description) == ("one", "Brew.")
    assert one(2) == one(cups=2) == "2 cups"
    assert two.policy == finish(2)
    assert (two.timeout_s, two.permission, two.on_duplicate) == (3, "ask", "join")
    assert two.read_only
    assert third.name == "three"


async def test_async_functions_run_on_the_loop(autojump_clock, open_bench):
    """An async tool works in a task of the call, in virtual time."""
    threads = []

    @tool
    async def brew(cups: int, context: ToolContext) -> dict[str, int]:
        threads.append(threading.current_thread())
        await trio.sleep(cups)
        return {"cups": cups, "answer": context.answer_number}

    async with open_bench(brew) as bench:
        result = await bench.start("brew", cups=3).result()
        assert result.content == '{"cups":3,"answer":1}'
        assert trio.current_time() == 3
    assert threads == [threading.current_thread()]


async def test_other_functions_run_in_threads(open_bench):
    """A plain function never blocks the event loop."""
    threads = []

    @tool
    def brew(context: ToolContext, cups: int = 1) -> str:
        threads.append(threading.current_thread())
        return f"{context.id}: {cups}"

    async with open_bench(brew) as bench:
        assert (await bench.start("brew").result()).content == "c1: 1"
    assert threads[0] is not threading.current_thread()


async def test_a_thread_works_in_real_time_on_a_virtual_clock(autojump_clock):
    """The clock jumps before and after it: two minutes pass, and no time limit is leapt over."""
    begun = threading.Barrier(2, timeout=30)

    @tool(timeout_s=60.0)
    def work() -> str:
        begun.wait()  # both of them at once
        time.sleep(0.05)
        return "done"

    model = ScriptedModel(["Both: ", ToolCallRequest("1", "work", {}, "{}"), calls("work")], "ok")
    async with open_call(answer_with(ChatNode(model, tools=[work]))) as caller:
        await caller.at(60.0)
        await caller.says("go", takes_s=1.0)
        await caller.quiet()
        first, second = caller.events(ToolResult)
        assert first.outcome == second.outcome == "completed"
        assert 0.04 < first.ran_s < 30
        await caller.at(120.0)
    assert caller.heard == "Both: ok"


async def test_a_thread_that_waits_for_the_caller_lets_the_clock_jump(autojump_clock):
    """A minute without an answer takes no minute of the test."""

    @tool
    def work(context: ToolContext) -> str:
        return trio.from_thread.run(lambda: context.ask("Which one?", timeout_s=600.0)).outcome

    model = ScriptedModel(calls("work"), "Nobody answers.")
    began_s = time.perf_counter()
    async with open_call(answer_with(ChatNode(model, tools=[work]))) as caller:
        await caller.says("go", takes_s=1.0)
        await caller.quiet(within_s=1000.0)
        [result] = caller.events(ToolResult)
        assert (result.content, result.ran_s > 600) == ("timed_out", True)
    assert time.perf_counter() - began_s < 60


def test_a_clock_that_runs_by_itself_runs_on_after_a_thread():
    """A clock that goes twice as fast as real time, and jumps, does both again afterwards."""

    @tool
    def work() -> str:
        return "done"

    async def main() -> tuple[float, float]:
        model = ScriptedModel(calls("work"), "Well done.")
        async with open_call(answer_with(ChatNode(model, tools=[work]))) as caller:
            await caller.says("go", takes_s=1.0)
            await caller.quiet()
        return clock.rate, clock.autojump_threshold

    clock = trio.testing.MockClock(rate=2.0, autojump_threshold=0.01)
    assert trio.run(main, clock=clock) == (2.0, 0.01)


async def test_methods_are_tools_of_their_instance(autojump_clock, open_bench):
    """In a class a tool is bound like a method; each instance has its own."""

    class Shop:
        def __init__(self, stock):
            self.stock = stock

        @tool
        async def sell(self, cups: int) -> int:
            """Sell."""
            self.stock -= cups
            return self.stock

    shop, other = Shop(10), Shop(5)
    assert Shop.sell.description == "Sell."
    assert list(shop.sell.parameters["properties"]) == ["cups"]
    assert await other.sell(1) == 4
    async with open_bench(shop.sell) as bench:
        assert (await bench.start("sell", cups=3).result()).content == "7"
    assert (shop.stock, other.stock) == (7, 4)


async def test_a_method_of_an_object_is_a_tool(autojump_clock, open_bench):
    """A class that knows nothing of tools lends its methods, such as in ``tools=[shop.sell]``."""

    class Shop:
        stock = 10

        async def sell(self, cups: int) -> int:
            """Sell."""
            self.stock -= cups
            return self.stock

        @classmethod
        async def name(cls) -> str:
            return cls.__name__

    shop = Shop()
    sell, name = tool(policy=shield(5.0))(shop.sell), tool(shop.name)
    assert (sell.name, list(sell.parameters["properties"])) == ("sell", ["cups"])
    assert await sell(1) == 9
    async with open_bench(sell, name) as bench:
        assert (await bench.start("sell", cups=3).result()).content == "6"
        assert (await bench.start("name").result()).content == "Shop"


async def test_a_plain_function_that_gives_a_coroutine(open_bench):
    """A value that JSON cannot hold is an error for the model, and the call continues."""

    @tool
    def wrong() -> object:
        return object()

    async with open_bench(wrong, expect_errors=TypeError) as bench:
        result = await bench.start("wrong").result()
        assert result.error
        assert result.content == "TypeError"


def plain() -> None:
    pass


def with_context(context: ToolContext) -> None:
    pass


async def on_the_loop() -> None:
    pass


class Shelf:
    def count(self) -> int:
        return 3


def generator():
    yield 1


async def async_generator():
    yield 1


@pytest.mark.parametrize(
    ("fn", "options", "message"),
    [
        (3, {}, "@tool stands before a function, not 3"),
        (print, {}, "@tool stands before a function"),
        (generator, {}, "is a generator"),
        (async_generator, {}, "is a generator"),
        (plain, {"where": "moon"}, "is 'thread' or 'worker', not 'moon'"),
        (on_the_loop, {"where": "worker"}, 'where="worker" is for plain functions'),
        (on_the_loop, {"inherit": ["A"]}, "names what a worker process gets"),
        (on_the_loop, {"inherit": "A"}, r"is a list: write \['A'\]"),
        (with_context, {"where": "worker"}, "neither a ToolContext nor self"),
        (Shelf().count, {"where": "worker"}, "neither a ToolContext nor self"),
        (lambda: 1, {"where": "worker"}, "no name by which a process can import it"),
        (plain, {"timeout_s": -1}, "timeout_s= of the tool 'plain'"),
    ],
)
def test_wrong_declarations(fn, options, message):
    """A function that cannot be a tool raises at its declaration."""
    with pytest.raises(ToolDefinitionError, match=message):
        tool(**options)(fn)


def test_a_tool_that_is_no_function_bare():
    """The bare decorator checks too."""
    with pytest.raises(ToolDefinitionError, match="stands before a function"):
        tool(3)


def test_a_tool_without_a_docstring_is_warned_of():
    """A tool of which a model learns only its name is warned of, once, where it is defined."""
    with capture_logs() as logs:

        @tool
        async def pay(amount: int) -> str:
            return "paid"

        @tool
        async def refund(amount: int) -> str:
            """Pay back."""
            return "paid back"

    (line,) = logs
    assert (line["event"], line["log_level"]) == ("tool_has_no_docstring", "warning")
    assert line["tool"].endswith("pay")
    assert "write one" in line["hint"]
    assert (pay.description, refund.description) == ("", "Pay back.")
