"""Worker processes, for real: what goes wrong in a function, and around it."""

from __future__ import annotations

import os
import signal
import sys

import pytest
import trio

from bargein.processes import (
    PythonWorker,
    WorkerCall,
    WorkerCallError,
    WorkerDiedError,
    WorkerStartError,
)
from bargein.tools import WorkerError

from .child import PATIENT, f

pytestmark = [pytest.mark.usefixtures("functions"), pytest.mark.proof]


class TestErrors:
    """What goes wrong in the function, and around it."""

    async def test_what_a_function_returns_runs_no_code_of_ours(self, worker):
        """A value is returned as JSON or not at all; nothing is unpickled in the parent."""
        with pytest.raises(WorkerCallError, match="a Bomb cannot leave the worker") as caught:
            await worker.call(f("bomb"))
        assert caught.value.class_name == "TypeError"
        assert await worker.call(f("count")) == 1

    async def test_an_exception_is_told_by_class_text_and_traceback(self, worker):
        """The worker lives on; the traceback begins at the function."""
        with pytest.raises(WorkerCallError, match="LookupError: nothing here") as caught:
            await worker.call(f("fail"), {"text": "nothing here"})
        error = caught.value
        assert (error.class_name, error.text) == ("LookupError", "nothing here")
        assert error.traceback_text.startswith("Traceback (most recent call last):")
        assert "_child_functions" not in error.traceback_text
        assert "raise LookupError(text)" in error.traceback_text
        assert await worker.call(f("count")) == 1

    @pytest.mark.parametrize(
        ("name", "kwargs", "class_name", "text"),
        [
            ("leave", {"code": 3}, "SystemExit", "3"),
            ("loud", {}, "Loud", ""),
            ("impossible", {}, "TypeError", "a function cannot leave the worker"),
            ("huge", {}, "ValueError", "at most 16777216 can be returned"),
            ("nowhere", {}, "AttributeError", "nowhere"),
            ("fail", {"wrong": 1}, "TypeError", "wrong"),
        ],
    )
    async def test_whatever_it_raises_the_worker_lives_on(
        self, worker, name, kwargs, class_name, text
    ):
        """An exit, a result that cannot be sent, a missing function: each is the call's error."""
        with pytest.raises(WorkerCallError) as caught:
            await worker.call(f(name), kwargs)
        assert caught.value.class_name == class_name
        assert text in caught.value.text
        assert await worker.call(f("count")) == 1

    async def test_a_process_that_dies_is_an_error_and_the_next_call_has_a_new_one(
        self, worker, state_of
    ):
        """The effect is unknown, the next call learns of the lost state, and no fork is left."""
        fork = await worker.call(f("fork"))
        with pytest.raises(WorkerDiedError, match=r"exit code 4.*is unknown"):
            await worker.call(f("die"), {"code": 4})
        assert state_of(fork) in "Z-"
        with pytest.raises(WorkerCallError, match=r"gone \(the worker was replaced") as caught:
            await worker.call(f("fail"), {"text": "gone"})
        assert caught.value.state_lost
        call = WorkerCall()
        await worker.call(f("count"), call=call)
        assert not call.state_lost

    async def test_a_fork_does_not_hide_the_end_of_its_process(self):
        """Nor where hang-ups are ignored, which end a fork with its process otherwise."""
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            with trio.fail_after(30):
                async with PythonWorker(ladder=PATIENT).open() as worker:
                    await worker.call(f("ignore_hang_up"))
                    await worker.call(f("fork"))
                    with pytest.raises(WorkerDiedError, match="exit code 4"):
                        await worker.call(f("die"), {"code": 4})
        finally:
            signal.signal(signal.SIGHUP, before)

    async def test_arguments_that_cannot_be_sent_start_nothing(self, worker):
        """The error names the function."""
        with pytest.raises(TypeError, match="arguments of 'child_functions:echo'"):
            await worker.call(f("echo"), {"value": lambda: None})
        assert worker.pid is None

    async def test_a_worker_must_be_open(self):
        """Before and after the block a call is an error."""
        worker = PythonWorker("adder")
        with pytest.raises(WorkerError, match="adder is not open: use"):
            await worker.call(f("count"))
        async with worker.open():
            pass
        with pytest.raises(WorkerError, match="adder is not open: use"):
            await worker.call(f("count"))

    async def test_a_process_that_does_not_start_is_an_error(self, tmp_path, monkeypatch):
        """A Python that cannot be run, ends at once, or never gets ready: each leaves nothing."""
        script = tmp_path / "python"
        script.write_text("#!/bin/sh\nexit 3\n")
        monkeypatch.setattr(sys, "executable", str(script))
        async with PythonWorker(start_s=0.3).open() as worker:
            with pytest.raises(WorkerStartError, match="cannot be started"):
                await worker.call(f("count"))
            script.chmod(0o755)
            with pytest.raises(WorkerStartError, match="exit code 3"):
                await worker.call(f("count"))
            script.write_text("#!/bin/sh\nexec sleep 60\n")
            with pytest.raises(WorkerStartError, match=r"not ready within 0\.3 s"):
                await worker.call(f("count"))
            assert worker.pid is None

    async def test_it_leaves_no_descriptor_open(self):
        """However a worker ends, this process has as many descriptors as before."""
        before = len(os.listdir("/proc/self/fd"))
        async with PythonWorker().open() as worker:
            await worker.call(f("count"))
            with pytest.raises(WorkerDiedError):
                await worker.call(f("die"), {"code": 1})
            await worker.call(f("count"))
        assert len(os.listdir("/proc/self/fd")) == before
