"""Background jobs: the tools and turns of a node that go on unheard, and how results come back.

A tool becomes a job when an interrupt detaches it, a turn when somebody moves it to the background.
It is the same task as before, and ends with the call at the latest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import structlog

from bargein.bridge.control import ActiveClock, BackgroundTurn, Caps, Meter, Verb
from bargein.bridge.events import ToolResult, TurnEnded

if TYPE_CHECKING:
    from bargein.bridge import Bridge, Message

    from ._call_protocols import CallWithJobs
    from .tools import RunningTool, ToolRunner

log = structlog.get_logger()

Usage = dict[str, tuple[float, float]]
"""Of each cap, how much is used and how much may be."""

JobStatus = Literal["running", "finished", "cancelled"]


class Job:
    """A tool or a turn in the background; the handle stays valid after it has ended.

    Attributes:
        id: The id of the tool's call; for a turn, ``turn_`` and its number.
        name: The name of the tool; for a turn, that of its agent.
        caps: How much it may take, counted from the call of the tool or the start of the turn.
        capped: The cap that ended it; empty if none did.
    """

    def __init__(
        self, work: RunningTool | BackgroundTurn, caps: Caps, usage: Callable[[], Usage]
    ) -> None:
        """Make a handle; a node's ``jobs`` lists them.

        Args:
            work: The tool or the turn at work.
            caps: Its limits.
            usage: Returns, for each of its caps, how much is used and how much may be.
        """
        self.id = work.id
        self.name = work.name
        self.caps = caps
        self.capped = ""
        self._work = work
        self._usage = usage
        self._cancelled = False

    @property
    def status(self) -> JobStatus:
        """``running`` until it has a result; ``cancelled`` if ``cancel()`` ended it."""
        if self._work.final is None:
            return "running"
        return "cancelled" if self._cancelled and self._work.is_cut else "finished"

    @property
    def result(self) -> ToolResult | None:
        """Its result; ``None`` while it runs."""
        return self._work.final

    @property
    def usage(self) -> Usage:
        """For each of its caps, how much is used and how much may be."""
        return self._usage()

    def describe(self) -> str:
        """Return in one line what ``cancel()`` would do now."""
        if self._work.final is not None:
            return "Cancel: nothing would happen; the job is over."
        verb: Verb = "emergency_stop" if self._work.policy == "detach" else "cancel"
        return f"Cancel: {self.name} {self._work.consequence(verb)}."

    def cancel(self) -> None:
        """Stop it, except for what its policy protects; never waits.

        The history then has its result, and the agent does not report it.
        """
        self._cancelled = True
        self._work.stop()

    async def wait(self) -> ToolResult:
        """Wait for its result.  Cancelling this is safe and does not stop the job."""
        await self._work.done.wait()
        assert self._work.final is not None
        return self._work.final

    async def keep_time(self, clock: ActiveClock, limit_s: float) -> None:
        """Stop it once its time is used up; for its node."""
        with clock.limit(limit_s) as scope:
            await self._work.done.wait()
        if scope.cancelled_caught:
            self.capped = "wall_s"
            self._work.stop()

    def __repr__(self) -> str:
        return f"<Job {self.name!r} {self.id!r} {self.status}>"


class Jobs:
    """The background jobs of one node in one call."""

    def __init__(self, bridge: Bridge, runner: ToolRunner, caps: Caps, turn_caps: Caps) -> None:
        """Begin to follow the tools and the turns of a node.

        Args:
            bridge: The node's place in the call.
            runner: Runs the node's tools.
            caps: How much each tool may take in the background.
            turn_caps: How much each turn may take, in front and in the background together.
        """
        call: CallWithJobs = bridge.call
        self._call = call
        self._source = bridge.name
        self._caps = caps
        self._turn_caps = turn_caps
        self._watched: dict[str, tuple[RunningTool, Meter]] = {}
        self._jobs: dict[str, Job] = {}
        call.router.observe(ToolResult, self._result)
        call.router.observe(TurnEnded, self._turn_ended)
        runner.on_settled = self._settled

    @property
    def all(self) -> tuple[Job, ...]:
        """The jobs so far, in the order in which they went to the background."""
        self._look_for_turns()
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
        meter.go_on_as_job(self._caps)
        job = self._jobs[running.id] = Job(running, self._caps, meter.snapshot)
        log.info("job_begun", job=job.id, tool=job.name)
        if self._caps.wall_s is not None:
            name = f"time of job {job.name}"
            self._call.nursery.start_soon(job.keep_time, meter.clock, self._caps.wall_s, name=name)

    def _turn_ended(self, message: Message) -> None:
        if message.event.outcome == "backgrounded":
            self._look_for_turns()

    def _look_for_turns(self) -> None:
        """Make jobs of the node's turns that went to the background."""
        for work in self._call.work.jobs:
            if not isinstance(work, BackgroundTurn) or work.name != self._source:
                continue
            if work.id not in self._jobs:
                self._jobs[work.id] = Job(work, self._turn_caps, work.turn.caps)
                log.info("job_begun", job=work.id, turn=work.turn.number)

    def _settled(self, running: RunningTool, result: ToolResult) -> None:
        job = self._jobs.get(running.id)
        log.info("job_ended", job=running.id, tool=running.name, outcome=result.outcome)
        bring(self._call, running, result, is_told=job is not None and bool(job.capped))


def bring(
    call: CallWithJobs, running: RunningTool, result: ToolResult, *, is_told: bool = False
) -> None:
    """Have the result of a job brought at the next boundary of the conversation.

    The agent that has the floor then tells it.  Of a job that somebody has stopped nobody speaks:
    its result only stands in the history.

    Args:
        call: The call.
        running: The tool.
        result: Its final result.
        is_told: Whether it is told even if it was stopped.
    """
    stopped = running.is_cut and result.outcome != "timed_out"
    call.delivery.bring(result, is_told=is_told or not stopped)
