"""Worker processes, for real: the functions they call, and what comes back."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs

from bargein.processes import (
    PythonWorker,
    WorkerCall,
    WorkerCallError,
)

from .child import f

pytestmark = [pytest.mark.usefixtures("functions"), pytest.mark.proof]


class TestCalls:
    """Calls that nobody interrupts."""

    async def test_a_function_is_called_by_path_or_by_itself(self, worker):
        """The value comes back; the process is another one than ours."""
        assert await worker.call(f("echo"), {"value": {"a": (1, None)}}) == {"a": [1, None]}
        assert await worker.call(os.path.join, {"a": "by itself"}) == "by itself"
        assert await worker.call(f("pid")) == worker.pid != os.getpid()

    async def test_the_process_starts_with_the_first_call_and_stays(self, worker):
        """Variables survive from call to call."""
        assert worker.pid is None
        calls = [WorkerCall() for _ in range(3)]
        assert [await worker.call(f("count"), call=call) for call in calls] == [1, 2, 3]
        assert {(call.is_begun, call.state_lost) for call in calls} == {(True, False)}

    async def test_calls_take_turns_in_order(self, worker):
        """One function runs at a time; the others wait in the order in which they came."""
        order: list[int] = []

        async def call(number: int) -> None:
            order.append(await worker.call(f("echo"), {"value": number, "delay_s": 0.01}))

        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(call, number)
                await trio.testing.wait_all_tasks_blocked()
        assert order == list(range(5))

    async def test_what_a_function_writes_is_captured_and_labelled(self, worker, capfd):
        """stdout, stderr and terminal are heard by the call's listener; its stdin is empty."""
        said: dict[str, str] = {}

        def hear(stream: str, text: str) -> None:
            said[stream] = said.get(stream, "") + text

        await worker.call(f("count"))
        capfd.readouterr()  # our own log of its start
        assert await worker.call(f("write"), on_output=hear) == ""
        assert said == {
            "stdout": "printed\nby descriptor\nby a child\nunfinished",
            "stderr": "to stderr\n",
            "tty": "to the terminal\n",
        }
        assert capfd.readouterr() == ("", "")

    async def test_all_it_has_written_is_heard_before_the_call_returns(self, worker):
        """However much was written just before the end, nothing is reported afterwards."""
        for _ in range(3):
            heard = 0

            def hear(stream: str, text: str) -> None:
                nonlocal heard
                heard += len(text)

            await worker.call(f("flood"), on_output=hear)
            assert heard == 3_000_001

    async def test_what_is_written_between_calls_belongs_to_none(self, worker, wait_until):
        """A thread that an earlier call has left is logged, and not heard as the next call."""
        said: list[str] = []
        with capture_logs() as logs:
            await worker.call(f("later"), {"delay_s": 0.05}, on_output=lambda _, t: said.append(t))
            await wait_until(lambda: any(line["event"] == "worker_writes" for line in logs))
        (line,) = [line for line in logs if line["event"] == "worker_writes"]
        assert line["pii_text"] == "of an earlier call\n"
        assert said == []

    async def test_a_listener_that_fails_is_logged_and_hurts_nobody(self, worker):
        """The call goes on."""

        def hear(stream: str, text: str) -> None:
            raise LookupError("secret")

        with capture_logs() as logs:
            await worker.call(f("write"), on_output=hear)
        (line, *_) = [line for line in logs if line["event"] == "worker_listener_failed"]
        assert (line["error"], line["pii_error"]) == ("LookupError", "secret")
        assert await worker.call(f("count")) == 1

    async def test_a_function_may_close_its_streams(self, worker):
        """The worker is usable all the same."""
        await worker.call(f("close_streams"))
        assert await worker.call(f("count")) == 1


SCRIPT = """
class Point:
    def __init__(self, x):
        self.x = x

def double(point):
    return {"x": 2 * point.x, "is_point": isinstance(point, Point)}

def native():
    return sum(range(10**12))

if __name__ == "__main__":
    import trio
    from bargein.processes import PythonWorker

    async def main():
        async with PythonWorker().open() as worker:
            point = await worker.call(double, {"point": Point(21)})
            print("point", point["x"], point["is_point"], worker.pid, flush=True)
            await worker.call(native)

    trio.run(main)
"""


@pytest.mark.parametrize("hang_up", [":", "trap '' HUP"])
async def test_a_script_has_a_worker_that_knows_it_and_dies_with_it(
    tmp_path: Path, wait_until, state_of, hang_up: str
):
    """The main script's own functions and classes are found; once it is killed the worker ends.

    What is under its ``__main__`` is not run again, and native code that holds the interpreter
    does not save the worker; neither does a script that ignores hang-ups, as under nohup.
    """
    path = tmp_path / "app.py"
    path.write_text(SCRIPT)
    script = subprocess.Popen(  # noqa: ASYNC220 - it is the test's own
        ["sh", "-c", f'{hang_up}; exec "$0" "$1"', sys.executable, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with script:
        assert script.stdout is not None
        said = next(line.split() for line in script.stdout if line.startswith("point"))
        pid = int(said[3])
        assert said[:3] == ["point", "42", "True"]
        await wait_until(lambda: state_of(pid) == "R")
        script.kill()
    await wait_until(lambda: state_of(pid) in "Z-")


async def a_sync_looking_one() -> None:
    pass


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        ("json", "write 'module:qualname'"),
        (":dumps", "write 'module:qualname'"),
        ("json:", "write 'module:qualname'"),
        (lambda: None, "define it with def at the top of a module"),
        (functools.partial(json.dumps, 1), "define it with def at the top of a module"),
        (a_sync_looking_one, "is async"),
    ],
    ids=["no name", "no module", "empty name", "lambda", "partial", "async"],
)
async def test_what_no_process_can_import_is_refused(worker, function, problem):
    """The error says what to do."""
    with pytest.raises(ValueError, match=problem):
        await worker.call(function, {})


async def test_a_function_is_found_by_its_module_and_name(worker):
    """By the function itself, by a method, or by a path of both, which imports nothing here."""
    assert await worker.call(json.dumps, {"obj": [1]}) == "[1]"
    assert await worker.call("json:dumps", {"obj": [1]}) == "[1]"
    assert "json.tool" not in sys.modules
    with pytest.raises(WorkerCallError):
        await worker.call("json.tool:nothing", {})
    assert "json.tool" not in sys.modules


async def test_a_worker_gets_only_the_variables_that_are_named(functions, monkeypatch):
    """No key and no token of ours reaches a function; what Python needs does."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("SHOP_DATABASE", "shop.db")
    monkeypatch.setenv("ORT_DISABLE_TELEMETRY", "1")
    with trio.fail_after(60):
        async with PythonWorker(inherit=["SHOP_DATABASE"]).open() as worker:
            got = await worker.call("os:environ.copy")
    assert "OPENAI_API_KEY" not in got
    assert got["SHOP_DATABASE"] == "shop.db"
    assert got["ORT_DISABLE_TELEMETRY"] == "1"
    assert got["PATH"] == os.environ["PATH"]
    with pytest.raises(TypeError, match=r"PythonWorker\(inherit=\) is a list"):
        PythonWorker(inherit="SHOP_DATABASE")
