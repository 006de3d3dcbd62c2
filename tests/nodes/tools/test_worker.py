"""Functions as tools in the worker process of their call, with real processes."""

import importlib.util
import sys
from pathlib import Path

import pytest
import trio

from bargein.events import ToolOutput

pytestmark = pytest.mark.proof

UNWIND_S = 6.0
"""What is deaf is killed before that: 2 s after SIGINT, 1 s after SIGTERM, and some looks."""
LIMIT_S = 60.0
"""A machine under load may take long to start a Python."""


@pytest.fixture
def functions(monkeypatch):
    """The module of functions, importable by the worker as well."""
    folder = Path(__file__).parent
    monkeypatch.syspath_prepend(str(folder))
    spec = importlib.util.spec_from_file_location(
        "worker_functions", folder / "worker_functions.py"
    )
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "worker_functions", module)
    spec.loader.exec_module(module)
    return module


async def test_the_functions_of_a_call_share_a_process(open_bench, functions):
    """A function's variables survive until the next call, and its output is published."""
    with trio.fail_after(LIMIT_S):
        async with open_bench(functions.keep) as bench:
            assert (await bench.start("keep", number=1).result()).content == "[1]"
            assert (await bench.start("keep", number=2).result()).content == "[1,2]"
            written = "".join(o.text for o in bench.caller.events(ToolOutput))
            assert written == "kept 1\nkept 2\n"


async def test_an_interrupted_function_stops_and_its_process_lives_on(open_bench, functions):
    """An interrupt ends the function that runs; the next finds what was kept."""
    with trio.fail_after(LIMIT_S):
        async with open_bench(functions.keep, functions.nap) as bench:
            await bench.start("keep", number=1).result()
            napping = bench.start("nap", seconds=1000.0)
            while napping.started_at_s is None:
                await trio.lowlevel.checkpoint()
            await trio.sleep(0.3)
            napping.interrupt("barge_in")
            await napping.done.wait()
            assert napping.outcome == "effect_unknown"
            assert (await bench.start("keep", number=2).result()).content == "[1,2]"


async def test_a_function_that_waits_for_the_process_did_not_start(open_bench, functions):
    """One after the other: what is cut while it waits has not begun."""
    with trio.fail_after(LIMIT_S):
        async with open_bench(functions.nap) as bench:
            await bench.start("nap", seconds=0.0).result()
            first = bench.start("nap", seconds=1000.0)
            await trio.sleep(0.3)
            second = bench.start("nap", seconds=1.0)
            while second.started_at_s is None:
                await trio.lowlevel.checkpoint()
            second.interrupt("cancel")
            await second.done.wait()
            assert (first.outcome, second.outcome) == (None, "not_started")
            first.interrupt("emergency_stop")
            await first.done.wait()


async def test_an_error_in_the_worker_is_the_result(open_bench, functions):
    """The model gets the function's exception."""
    with trio.fail_after(LIMIT_S):
        async with open_bench(functions.fail, expect_errors="in the worker") as bench:
            result = await bench.start("fail").result()
            assert result.error
            assert result.content == "ZeroDivisionError"


@pytest.mark.parametrize("how", ["stop", "die"])
async def test_a_process_that_is_stuck_delays_nobody(open_bench, functions, how):
    """Who waits is told at the limit of the tool, another call goes on, and then the same one.

    A process that hears nothing has the time of its ladder until it is killed.
    """
    with trio.fail_after(LIMIT_S):
        async with (
            open_bench(functions.trouble, functions.hello, expect_errors=True) as first,
            open_bench(functions.hello) as second,
        ):
            assert (await first.start("hello").result()).content == "hello"
            assert (await second.start("hello").result()).content == "hello"
            began_s = trio.current_time()
            stuck = first.start("trouble", how=how)
            behind = first.start("hello")
            assert (await second.start("hello").result()).content == "hello"
            assert trio.current_time() - began_s < 2
            result = await stuck.result()
            cut = how == "stop"
            assert result.error
            assert result.outcome == ("timed_out" if cut else "effect_unknown")
            assert trio.current_time() - began_s < 0.5 + UNWIND_S
            assert (await behind.result()).content.startswith("hello")
            assert trio.current_time() - began_s < 0.5 + UNWIND_S + 2


async def test_the_end_of_the_call_ends_the_process(open_bench, functions):
    """A call that ends stops its worker, also in the middle of a function."""
    with trio.fail_after(LIMIT_S):
        async with open_bench(functions.nap) as bench:
            await bench.start("nap", seconds=0.0).result()
            napping = bench.start("nap", seconds=1000.0)
            await trio.sleep(0.3)
        assert napping.done.is_set()
        assert napping.outcome == "effect_unknown"
