"""Background jobs: the tools of a node that go on after their turn, and how results come back.

A tool becomes a job when an interrupt detaches it, or somebody moves it to the background.  It is
the same task as before, and ends with the call at the latest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import structlog

from bridge.control._caps import Caps, Meter
from bridge.events import JobFinished, ToolResult

if TYPE_CHECKING:
    from bridge import Call, Message

    from .tools import RunningTool, ToolRunner

log = structlog.get_logger()

JobStatus = Literal["running", "finished", "cancelled"]


class Job:
    """A tool that goes on in the background; a handle that stays good when it has ended.

    Attributes:
        id: The id of the tool's call.
        name: The name of the tool.
        caps: How much it may take, counted from its call.
        capped: The cap that has ended it; empty if none did.
    """

    def __init__(self, work: RunningTool, meter: Meter, caps: Caps) -> None:
        """Make a handle; a node's ``jobs`` lists them.

        Args:
            work: The tool at work.
            meter: Counts what it does.
            caps: Its limits.
        """
        self.id = work.id
        self.name = work.name
        self.caps = meter.caps = caps
        self.capped = ""
        self._work = work
        self._meter = meter
        self._cancelled = False
        meter.clock.close()  # it stands still no more when the turn that began it does

    @property
    def status(self) -> JobStatus:
        """``running`` until it has its result; ``cancelled`` if ``cancel()`` has ended it."""
        if self._work.final is None:
            return "running"
        return "cancelled" if self._cancelled and self._work.is_cut else "finished"

    @property
    def result(self) -> ToolResult | None:
        """What came of it; ``None`` while it runs."""
        return self._work.final

    @property
    def usage(self) -> dict[str, tuple[float, float]]:
        """Of each of its caps, how much is used and how much may be."""
        return self._meter.snapshot()

    def cancel(self) -> None:
        """Stop it, but for what its policy keeps from being cut; never waits.

        Its result then stands in the history, and the agent does not speak of it by itself.
        """
        self._cancelled = True
        self._work.stop()

    async def wait(self) -> ToolResult:
        """Wait for its result.  Cancelling this is safe and does not stop the job."""
        await self._work.done.wait()
        assert self._work.final is not None
        return self._work.final

    async def keep_time(self, limit_s: float) -> None:
        """Stop it when it has used up its time; for its node."""
        with self._meter.clock.limit(limit_s) as scope:
            await self._work.done.wait()
        if scope.cancelled_caught:
            self.capped = "wall_s"
            self._work.stop()

    def __repr__(self) -> str:
        return f"<Job {self.name!r} {self.id!r} {self.status}>"


class Jobs:
    """The background jobs of one node in one call."""

    def __init__(self, call: Call, runner: ToolRunner, caps: Caps) -> None:
        """Begin to follow the tools of a node.

        Args:
            call: The call.
            runner: Runs the node's tools.
            caps: How much each job may take.
        """
        self._call = call
        self._caps = caps
        self._watched: dict[str, tuple[RunningTool, Meter]] = {}
        self._jobs: dict[str, Job] = {}
        call.router.observe(ToolResult, self._result)
        runner.on_settled = self._settled

    @property
    def all(self) -> tuple[Job, ...]:
        """The jobs so far, in the order in which they went to the background."""
        return tuple(self._jobs.values())

    def watch(self, running: RunningTool, meter: Meter) -> None:
        """Follow a tool that was started, as it may become a job."""
        if running.outcome is None:
            self._watched[running.id] = (running, meter)

    def _result(self, message: Message) -> None:
        """Make a job of a tool whose result is that it goes on."""
        result: ToolResult = message.event
        running, meter = self._watched.pop(result.id, (None, None))
        if running is None or meter is None or result.outcome != "backgrounded":
            return
        job = self._jobs[running.id] = Job(running, meter, self._caps)
        log.info("job_begun", job=job.id, tool=job.name)
        if self._caps.wall_s is not None:
            limit_s = self._caps.wall_s
            self._call.nursery.start_soon(job.keep_time, limit_s, name=f"time of job {job.name}")

    def _settled(self, running: RunningTool, result: ToolResult) -> None:
        job = self._jobs.get(running.id)
        log.info("job_ended", job=running.id, tool=running.name, outcome=result.outcome)
        bring(self._call, running, result, is_told=job is not None and bool(job.capped))


def bring(call: Call, running: RunningTool, result: ToolResult, *, is_told: bool = False) -> None:
    """Have the result of a job brought at the next boundary of the conversation.

    The agent that has the floor then tells it.  Of a job that somebody has stopped nobody speaks:
    its result only stands in the history.

    Args:
        call: The call.
        running: The tool.
        result: Its final result.
        is_told: Whether it is told even if it was stopped.
    """
    finished = JobFinished(
        id=result.id,
        name=result.name,
        content=result.content,
        error=result.error,
        outcome=result.outcome,
    )
    stopped = running.is_cut and result.outcome != "timed_out" and not is_told
    floor = call.floor
    call.delivery.put(finished, "call" if stopped or floor is None else floor.name)
