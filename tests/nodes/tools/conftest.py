"""A call with an answer under way, and the tools of its agent."""

from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from bargein.events import ToolCall, ToolResult
from bargein.tools import ToolRunner
from tests.held_answer import held_answer


class Bench:
    """An answer that lasts until it is cut, and a runner of tools."""

    def __init__(self, caller, run, runner):
        self.caller = caller
        self.call = caller.call
        self.run = run
        self.runner = runner
        self.calls = 0

    def start(self, name, *, raw="", job=False, id=None, **arguments):
        """Call a tool from the answer, or from a job."""
        self.calls += 1
        request = ToolCall(name=name, arguments=arguments, id=id or f"c{self.calls}")
        return self.runner.start(request, run=None if job else self.run, raw=raw)

    async def begin(self, name, **arguments):
        """Call a tool and wait until its body has begun."""
        running = self.start(name, **arguments)
        await trio.testing.wait_all_tasks_blocked()
        assert running.started_at_s is not None
        return running

    def results(self):
        """The results that were published, as (id, outcome)."""
        return [(r.id, r.outcome) for r in self.caller.events(ToolResult)]


@pytest.fixture
def open_bench():
    """Open a call with an answer under way."""

    @asynccontextmanager
    async def opened(*tools, expect_errors=False):
        async with held_answer(expect_errors=expect_errors) as (caller, run):
            runner = ToolRunner(caller.call, tools, source="agent")
            yield Bench(caller, run, runner)

    return opened
