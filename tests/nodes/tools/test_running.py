"""A tool that was called, interrupted by every verb under every policy, at exact times."""

import math

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from bridge.control import VERBS, StillRunning, Work
from bridge.events import (
    JobFinished,
    PermissionAnswered,
    PermissionRequested,
    ToolCall,
    ToolResult,
    UserStartedSpeaking,
)
from nodes.tools import Tool, ToolContext, commit, finish, shield, tool
from nodes.tools._words import WORDS

CUTTING = ("barge_in", "pause", "redirect", "cancel")
"""The verbs that act by the policy."""

FORCED = ("emergency_stop", "shutdown")


def sleeper(policy="cancel", **options):
    """A tool that takes ten seconds."""

    @tool("work", policy=policy, **options)
    async def work(seconds: float = 10.0) -> str:
        await trio.sleep(seconds)
        return "worked"

    return work


# --- without an interrupt -----------------------------------------------------------------------


async def test_a_tool_runs_and_gives_one_result(autojump_clock, open_bench):
    """The call is published at once, the result when the body ends, with how long it ran."""
    async with open_bench(sleeper()) as bench:
        running = bench.start("work", seconds=2.5)
        assert bench.caller.events(ToolCall) == [
            ToolCall(name="work", arguments={"seconds": 2.5}, id="c1")
        ]
        assert running.started_at_s is None
        assert running in bench.call.work.of(bench.run)
        result = await running.result()
        assert trio.current_time() == 2.5
        assert result == ToolResult(name="work", id="c1", content="worked", ran_s=2.5)
        assert running.done.is_set()
        assert running.outcome == "completed"
        assert running.final == result
        assert len(bench.call.work) == 0
        assert bench.caller.events(ToolResult) == [result]


async def test_it_is_work_of_its_turn(autojump_clock, open_bench):
    """It has all that whoever interrupts looks at."""
    async with open_bench(sleeper(shield(3))) as bench:
        running: Work = bench.start("work")
        assert (running.id, running.name, running.policy) == ("c1", "work", "shield")
        assert running.run is bench.run
        assert running.turn == bench.call.turn_of(bench.run).number == 1
        assert running.started_at_s is None
        await trio.sleep(1)
        assert running.started_at_s == 0.0


async def test_cancelling_the_wait_does_not_stop_the_tool(autojump_clock, open_bench):
    """Whoever waits for a result may leave, and another may come."""
    async with open_bench(sleeper()) as bench:
        running = bench.start("work", seconds=4)
        with trio.move_on_after(1):
            await running.result()
        assert running.outcome is None
        assert (await running.result()).outcome == "completed"
        assert trio.current_time() == 4


async def test_an_error_is_the_result(autojump_clock, open_bench):
    """The model is told class and message of what a tool raises; the call goes on."""

    @tool
    async def fail() -> None:
        raise LookupError("no such table")

    async with open_bench(fail) as bench:
        with capture_logs() as logs:
            result = await bench.start("fail").result()
        assert result.error
        assert result.outcome == "completed"
        assert result.content == "LookupError: no such table"
        failed = next(line for line in logs if line["event"] == "tool_failed")
        assert failed["pii_error"] == "no such table"
        assert not bench.call.ended.is_set()


async def test_a_tool_that_takes_too_long_is_cut(autojump_clock, open_bench):
    """At its timeout a tool is cut, and the model is told that its effect is not known."""
    async with open_bench(sleeper(shield(60), timeout_s=3.0)) as bench:
        result = await bench.start("work").result()
        assert trio.current_time() == 3
        assert result.error
        assert (result.outcome, result.ran_s) == ("timed_out", 3.0)
        assert result.content == WORDS["timed_out"]


# --- policies and verbs ---------------------------------------------------------------------------


@pytest.mark.parametrize("verb", CUTTING)
async def test_cancel_ends_it_now(autojump_clock, open_bench, verb):
    """Under `cancel` the scope is cancelled in the step of the interrupt."""
    async with open_bench(sleeper()) as bench:
        running = await bench.begin("work")
        await trio.sleep(3)
        assert running.consequence(verb) == "is stopped"
        assert running.interrupt(verb) is None
        assert running.is_cut
        await running.done.wait()
        assert trio.current_time() == 3
        assert running.outcome == "effect_unknown"
        assert (running.final.content, running.final.ran_s) == (WORDS["effect_unknown"], 3.0)
        assert not running.final.error
        assert bench.results() == [("c1", "effect_unknown")]


@pytest.mark.parametrize("verb", CUTTING)
async def test_finish_lets_it_end_within_its_grace(autojump_clock, open_bench, verb):
    """Under `finish` a tool that ends in time gives its result, which says that it did."""
    async with open_bench(sleeper(finish(2.0))) as bench:
        running = await bench.begin("work", seconds=4)
        await trio.sleep(3)
        assert running.consequence(verb) == "may finish, at most 2 s"
        assert running.interrupt(verb) == StillRunning("c1", "work", "finish", 5.0)
        result = await running.result()
        assert trio.current_time() == 4
        assert result.outcome == "completed_after_interrupt"
        assert result.content == "worked\n" + WORDS["completed_after_interrupt"]


@pytest.mark.parametrize("verb", CUTTING)
async def test_finish_cuts_it_after_its_grace(autojump_clock, open_bench, verb):
    """Under `finish` the grace counts from the first interrupt, and nothing makes it longer."""
    async with open_bench(sleeper(finish(2.0))) as bench:
        running = await bench.begin("work")
        await trio.sleep(3)
        running.interrupt(verb)
        await trio.sleep(1)
        assert running.interrupt(verb) == StillRunning("c1", "work", "finish", 5.0)
        assert running.interrupt("cancel") == StillRunning("c1", "work", "finish", 5.0)
        assert running.consequence("cancel") == "may finish, at most 1 s"
        await running.done.wait()
        assert trio.current_time() == 5
        assert running.outcome == "effect_unknown"


@pytest.mark.parametrize("verb", CUTTING)
async def test_shield_holds_until_its_cap(autojump_clock, open_bench, verb):
    """Under `shield` nothing cuts it before the cap, which counts from its start."""
    async with open_bench(sleeper(shield(8.0))) as bench:
        running = await bench.begin("work")
        await trio.sleep(3)
        assert running.consequence(verb) == "may finish, at most 5 s"
        assert running.interrupt(verb) == StillRunning("c1", "work", "shield", 8.0)
        await running.done.wait()
        assert trio.current_time() == 8
        assert running.outcome == "effect_unknown"


async def test_a_shield_that_is_over_protects_no_more(autojump_clock, open_bench):
    """An interrupt after the cap cuts at once; without an interrupt the cap means nothing."""
    async with open_bench(sleeper(shield(2.0))) as bench:
        running = await bench.begin("work")
        await trio.sleep(5)
        assert running.interrupt("barge_in") is None
        await running.done.wait()
        assert trio.current_time() == 5


@pytest.mark.parametrize("verb", CUTTING)
async def test_detach_goes_on_as_a_job(autojump_clock, open_bench, verb):
    """Under `detach` it leaves its turn at once, and its final result comes once, at the end."""
    async with open_bench(sleeper("detach")) as bench:
        running = await bench.begin("work")
        settled = []
        running.on_settled = lambda *what: settled.append((trio.current_time(), *what))
        assert running.consequence(verb) == "goes on in the background"
        assert running.interrupt(verb) == StillRunning("c1", "work", "detach", math.inf)
        assert running.run is None
        assert bench.call.work.jobs == (running,)
        assert bench.call.work.of(bench.run) == ()
        result = await running.result()
        assert trio.current_time() == 0
        assert result.outcome == "backgrounded"
        assert running.outcome is None
        assert running.interrupt(verb) == StillRunning("c1", "work", "detach", math.inf)
        await running.done.wait()
        assert trio.current_time() == 10
        assert settled == [(10.0, running, running.final)]
        assert running.final.content == "worked"
        assert running.final.outcome == "completed"
        assert bench.results() == [("c1", "backgrounded")]


@pytest.mark.parametrize("policy", ["cancel", finish(5), shield(60), "detach"])
@pytest.mark.parametrize("verb", FORCED)
async def test_no_policy_holds_up_what_is_forced(autojump_clock, open_bench, verb, policy):
    """`emergency_stop` and `shutdown` leave no grace, whatever the policy."""
    async with open_bench(sleeper(policy)) as bench:
        running = await bench.begin("work")
        await trio.sleep(1)
        assert running.consequence(verb) == "is stopped"
        assert running.interrupt(verb) is None
        await running.done.wait()
        assert trio.current_time() == 1
        assert running.outcome == "effect_unknown"


@pytest.mark.parametrize("policy", [finish(5), shield(60)])
async def test_a_stronger_verb_upgrades_a_weaker_one(autojump_clock, open_bench, policy):
    """An emergency stop ends a grace that a barge-in has left."""
    async with open_bench(sleeper(policy)) as bench:
        running = await bench.begin("work")
        assert running.interrupt("barge_in") is not None
        await trio.sleep(1)
        assert running.interrupt("emergency_stop") is None
        assert running.interrupt("barge_in") is None
        await running.done.wait()
        assert trio.current_time() == 1


@pytest.mark.parametrize("verb", VERBS)
async def test_nothing_happens_to_what_is_over(autojump_clock, open_bench, verb):
    """An interrupt after the end is a no-op: one result, and it stays."""
    async with open_bench(sleeper()) as bench:
        running = bench.start("work", seconds=1)
        await running.done.wait()
        assert running.consequence(verb) == "nothing"
        assert running.interrupt(verb) is None
        assert not running.to_background()
        await trio.testing.wait_all_tasks_blocked()
        assert bench.results() == [("c1", "completed")]


async def test_resume_does_nothing(autojump_clock, open_bench):
    """`resume` is no interrupt: a tool that runs goes on, and one that stops stops."""
    async with open_bench(sleeper()) as bench:
        running = await bench.begin("work")
        assert running.consequence("resume") == "nothing"
        assert running.interrupt("resume") == StillRunning("c1", "work", "cancel", math.inf)
        assert not running.is_cut


@pytest.mark.parametrize("verb", VERBS)
async def test_what_has_not_begun_never_begins(autojump_clock, open_bench, verb):
    """In the step of its start a tool can still be kept from running."""
    began = []

    @tool(policy=shield(9))
    async def note() -> None:
        began.append(1)

    async with open_bench(note) as bench:
        running = bench.start("note")
        if verb == "resume":
            return
        assert running.consequence(verb) == "is not started"
        assert running.interrupt(verb) is None
        assert running.outcome == "not_started"
        assert running.done.is_set()
        await trio.sleep(1)
        assert not began
        assert bench.results() == [("c1", "not_started")]
        assert running.final.ran_s == 0
        assert len(bench.call.work) == 0


async def test_an_interrupt_between_the_start_and_the_first_step(autojump_clock, open_bench):
    """Whatever the step in which the interrupt comes, a body that has not begun never does."""
    for steps in range(6):
        effects = []
        async with open_bench(noting(effects)) as bench:
            running = bench.start("note")
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            running.interrupt("cancel")
            await running.done.wait()
            await trio.testing.wait_all_tasks_blocked()
            assert (running.outcome == "not_started") == (not effects)
            assert len(bench.results()) == 1


def noting(effects):
    @tool
    async def note() -> None:
        effects.append(1)
        await trio.sleep_forever()

    return note


# --- the background -------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["cancel", finish(1), shield(2), "detach"])
async def test_the_verb_background_moves_any_tool(autojump_clock, open_bench, policy):
    """`background` lets the same task go on, whatever the policy."""
    async with open_bench(sleeper(policy)) as bench:
        running = await bench.begin("work")
        await trio.sleep(3)
        kind = running.policy
        assert running.consequence("background") == "goes on in the background"
        assert running.interrupt("background") == StillRunning("c1", "work", kind, math.inf)
        assert not running.to_background()
        await running.done.wait()
        assert trio.current_time() == 10
        assert running.final.ran_s == 10
        (finished,) = bench.caller.events(JobFinished)
        assert finished == JobFinished(id="c1", name="work", content="worked")


async def test_a_job_may_be_stopped(autojump_clock, open_bench):
    """A job obeys an interrupt of its own by its policy; `detach` has nowhere else to go."""
    async with open_bench(sleeper("detach")) as bench:
        running = await bench.begin("work")
        running.to_background()
        running.stop()
        await running.done.wait()
        assert trio.current_time() == 0
        (finished,) = bench.caller.events(JobFinished)
        assert finished.outcome == "effect_unknown"


async def test_a_moved_tool_keeps_its_policy(autojump_clock, open_bench):
    """A job with a grace has it when it is stopped."""
    async with open_bench(sleeper(finish(2))) as bench:
        running = await bench.begin("work")
        running.to_background()
        running.stop()
        await running.done.wait()
        assert trio.current_time() == 2


async def test_cancel_wins_over_background(autojump_clock, open_bench):
    """What was asked to stop by a stronger verb cannot be moved any more."""
    async with open_bench(sleeper(finish(2))) as bench:
        running = await bench.begin("work")
        running.interrupt("cancel")
        assert not running.to_background()
        assert running.interrupt("background") == StillRunning("c1", "work", "finish", 2.0)
        await running.done.wait()
        assert bench.results() == [("c1", "effect_unknown")]


async def test_background_upgrades_a_barge_in(autojump_clock, open_bench):
    """What a weaker verb has given a grace may be moved, and then has time again."""
    async with open_bench(sleeper(finish(2))) as bench:
        running = await bench.begin("work")
        running.interrupt("barge_in")
        assert running.to_background()
        await running.done.wait()
        assert trio.current_time() == 10
        assert running.outcome == "completed"


async def test_a_job_keeps_its_timeout(autojump_clock, open_bench):
    """The background makes no tool live longer than its timeout."""
    async with open_bench(sleeper("detach", timeout_s=4)) as bench:
        running = await bench.begin("work")
        running.interrupt("barge_in")
        await running.done.wait()
        assert trio.current_time() == 4
        assert running.outcome == "timed_out"


async def test_a_listener_that_raises_harms_nobody(autojump_clock, open_bench):
    """What listens for the end of a job may fail; that is logged."""

    def fail(running, result):
        raise ValueError("listener")

    async with open_bench(sleeper("detach")) as bench:
        bench.runner.on_settled = fail
        running = await bench.begin("work")
        running.to_background()
        with capture_logs() as logs:
            await running.done.wait()
        assert "listener_failed" in [line["event"] for line in logs]
        assert not bench.call.ended.is_set()


# --- permission -----------------------------------------------------------------------------------


async def test_a_tool_asks_and_runs_when_allowed(autojump_clock, open_bench):
    """Before the answer nothing runs, and the turn says that it waits."""
    async with open_bench(sleeper(permission="ask")) as bench:
        running = bench.start("work", seconds=1)
        await trio.sleep(5)
        turn = bench.call.turn_of(bench.run)
        assert turn.phase == "permission"
        assert running.started_at_s is None
        assert running in bench.call.work.of(bench.run)
        (asked,) = bench.caller.events(PermissionRequested)
        assert asked == PermissionRequested(id="c1", name="work", arguments={"seconds": 1})
        assert bench.call.permissions.respond("c1", True)
        result = await running.result()
        assert trio.current_time() == 6
        assert turn.phase == "tool"
        assert (result.outcome, result.ran_s) == ("completed", 1.0)


async def test_a_denied_tool_does_not_run(autojump_clock, open_bench):
    """A "no" reaches the model as the user's."""
    async with open_bench(sleeper(permission="ask")) as bench:
        running = bench.start("work")
        await trio.testing.wait_all_tasks_blocked()
        bench.call.permissions.respond("c1", False)
        result = await running.result()
        assert (result.outcome, result.content) == ("denied", WORDS["denied"])
        assert "user denied" in result.content
        assert running.started_at_s is None


@pytest.mark.parametrize("verb", [v for v in VERBS if v != "resume"])
@pytest.mark.parametrize("policy", ["cancel", shield(9), "detach"])
async def test_an_interrupt_withdraws_the_question(autojump_clock, open_bench, verb, policy):
    """In the step of the interrupt the question is closed; that is neither a yes nor a no."""
    async with open_bench(sleeper(policy, permission="ask")) as bench:
        running = bench.start("work")
        await trio.testing.wait_all_tasks_blocked()
        assert running.consequence(verb) == "is asked about no more"
        assert running.interrupt(verb) is None
        assert running.outcome == "withdrawn"
        assert bench.call.permissions.pending == ()
        assert [a.verdict for a in bench.caller.events(PermissionAnswered)] == ["withdrawn"]
        assert not bench.call.permissions.respond("c1", True)
        await trio.sleep(1)
        assert bench.results() == [("c1", "withdrawn")]
        assert running.started_at_s is None
        assert "neither yes nor no" in running.final.content


async def test_an_interrupt_right_after_the_answer(autojump_clock, open_bench):
    """A tool that was allowed and cut in the same step does not run."""
    async with open_bench(sleeper(permission="ask")) as bench:
        running = bench.start("work")
        await trio.testing.wait_all_tasks_blocked()
        bench.call.permissions.respond("c1", True)
        running.interrupt("barge_in")
        await trio.sleep(1)
        assert bench.results() == [("c1", "not_started")]


async def test_a_run_that_was_cut_while_it_asked(autojump_clock, open_bench):
    """An answer that comes for a run that was cut starts nothing."""
    async with open_bench(sleeper(permission="ask")) as bench:
        bench.call.router.on_cut = None  # nobody tells the tool
        running = bench.start("work")
        await trio.testing.wait_all_tasks_blocked()
        bench.run.cut()
        bench.call.permissions.respond("c1", True)
        await running.done.wait()
        assert running.started_at_s is None
        assert running.outcome in ("not_started", "withdrawn")


async def test_two_questions_of_a_turn(autojump_clock, open_bench):
    """A turn waits for permission until the last of its questions is closed."""
    async with open_bench(sleeper(permission="ask")) as bench:
        bench.start("work", seconds=1)
        bench.start("work", seconds=2)
        await trio.testing.wait_all_tasks_blocked()
        turn = bench.call.turn_of(bench.run)
        bench.call.permissions.respond("c1", True)
        await trio.testing.wait_all_tasks_blocked()
        assert turn.phase == "permission"
        bench.call.permissions.respond("c2", True)
        await trio.testing.wait_all_tasks_blocked()
        assert turn.phase == "tool"


# --- commit ---------------------------------------------------------------------------------------


def payment(policy="cancel", *, commits=False):
    """A tool that thinks for 2 s, pays for 3 s, and writes a receipt for 2 s."""

    @tool("pay", policy=policy, commits=commits)
    async def pay() -> str:
        await trio.sleep(2)
        async with commit(4.0):
            await trio.sleep(3)
        await trio.sleep(2)
        return "paid"

    return pay


@pytest.mark.parametrize("verb", ["barge_in", "cancel", *FORCED])
async def test_a_commit_section_is_not_cut(autojump_clock, open_bench, verb):
    """An interrupt within the section takes effect right after it."""
    async with open_bench(payment()) as bench:
        running = await bench.begin("pay")
        await trio.sleep(3)
        assert running.consequence(verb) == "completes its effect, at most 3 s"
        assert running.interrupt(verb) == StillRunning("c1", "pay", "cancel", 6.0)
        await running.done.wait()
        assert trio.current_time() == 5
        assert running.outcome == "effect_unknown"


async def test_before_its_commit_section_a_tool_has_done_nothing(autojump_clock, open_bench):
    """A tool that says that all its effect lies there is safe to repeat when cut before."""
    for commits, outcome in [(True, "cancelled_before_effect"), (False, "effect_unknown")]:
        async with open_bench(payment(commits=commits)) as bench:
            running = await bench.begin("pay")
            await trio.sleep(1)
            running.interrupt("cancel")
            await running.done.wait()
            assert running.outcome == outcome


async def test_a_grace_is_at_least_the_section(autojump_clock, open_bench):
    """What is told of a tool with a grace in its section is when it ends at the latest."""
    async with open_bench(payment(finish(1.0))) as bench:
        running = await bench.begin("pay")
        await trio.sleep(3)
        assert running.consequence("barge_in") == "may finish, at most 3 s"
        assert running.interrupt("barge_in") == StillRunning("c1", "pay", "finish", 6.0)
        await trio.sleep(1.5)
        assert running.is_cut
        assert running.interrupt("cancel") == StillRunning("c1", "pay", "finish", 6.0)
        await running.done.wait()
        assert trio.current_time() == 5


async def test_after_its_commit_section_the_effect_is_not_known(autojump_clock, open_bench):
    """A tool that is cut after its section has had its effect, and has not told of it."""
    async with open_bench(payment(commits=True)) as bench:
        running = await bench.begin("pay")
        await trio.sleep(6)
        running.interrupt("cancel")
        await running.done.wait()
        assert running.outcome == "effect_unknown"


async def test_a_tool_that_ends_with_its_section_completes(autojump_clock, open_bench):
    """An interrupt within the section does not take away a result that needs no more waiting."""

    @tool
    async def pay() -> str:
        async with commit():
            await trio.sleep(2)
        return "paid"

    async with open_bench(pay) as bench:
        running = await bench.begin("pay")
        await trio.sleep(1)
        running.interrupt("cancel")
        await running.done.wait()
        assert trio.current_time() == 2
        assert running.outcome == "completed_after_interrupt"
        assert running.final.content.startswith("paid\n")


async def test_a_section_that_overruns_fails(autojump_clock, open_bench):
    """At its deadline the section is left by an error, and its effect is not known."""

    @tool
    async def pay() -> None:
        async with commit(2.0):
            await trio.sleep_forever()

    async with open_bench(pay) as bench:
        with capture_logs() as logs:
            result = await bench.start("pay").result()
        assert trio.current_time() == 2
        assert (result.error, result.outcome) == (True, "effect_unknown")
        assert (
            "CommitOverrun: the commit section of 'pay' was not over after 2.0 s" in result.content
        )
        assert "verify before retrying" in result.content
        assert "commit_overrun" in [line["event"] for line in logs]


async def test_a_timeout_waits_for_the_section(autojump_clock, open_bench):
    """A tool's own timeout does not cut its section either."""

    @tool(timeout_s=1.0)
    async def pay() -> str:
        async with commit():
            await trio.sleep(3)
        return "paid"

    async with open_bench(pay) as bench:
        result = await bench.start("pay").result()
        assert (result.outcome, result.content, result.ran_s) == ("completed", "paid", 3.0)


# --- what else becomes of it ----------------------------------------------------------------------


async def test_a_tool_without_effect_was_cancelled_before_it(autojump_clock, open_bench):
    """What only reads is safe to repeat, whenever it is cut."""
    async with open_bench(sleeper(read_only=True)) as bench:
        running = await bench.begin("work")
        running.interrupt("cancel")
        await running.done.wait()
        assert running.outcome == "cancelled_before_effect"


async def test_an_error_while_it_is_cut_changes_no_outcome(autojump_clock, open_bench):
    """What clean-up raises is logged; the model reads that the tool was cut."""

    @tool
    async def work() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise OSError("already closed")

    async with open_bench(work) as bench:
        running = await bench.begin("work")
        with capture_logs() as logs:
            running.interrupt("cancel")
            await running.done.wait()
        assert running.outcome == "effect_unknown"
        assert running.final.content == WORDS["effect_unknown"]
        assert "tool_failed" in [line["event"] for line in logs]


async def test_a_tool_may_say_what_became_of_it(autojump_clock, open_bench):
    """What a tool concludes while it is cut stands beside the standard words."""

    class Outbox(Tool):
        async def run(self, context, arguments):
            try:
                await trio.sleep(9)
            except trio.Cancelled:
                context.conclude("3 of 10 mails were sent", error=False)
                raise
            return "all sent"

    async with open_bench(Outbox("outbox")) as bench:
        running = await bench.begin("outbox")
        running.interrupt("cancel")
        await running.done.wait()
        assert running.outcome == "effect_unknown"
        assert running.final.content == WORDS["effect_unknown"] + "\n3 of 10 mails were sent"


async def test_a_body_that_swallows_its_cancellation_is_abandoned(autojump_clock, open_bench):
    """After a bound it has its outcome, with a warning; what it does later nobody hears."""

    @tool
    async def deaf(context: ToolContext) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(30)
        context.progress("still there")
        return "late"

    async with open_bench(deaf) as bench:
        running = await bench.begin("deaf")
        with capture_logs() as logs:
            running.interrupt("cancel")
            await running.done.wait()
            assert trio.current_time() == 2
            assert running.outcome == "effect_unknown"
            assert len(bench.call.work) == 0
            await trio.sleep(40)
        assert bench.results() == [("c1", "effect_unknown")]
        assert [
            r.event for r in bench.caller.received if r.at_s > 2 and "Tool" in repr(r.event)
        ] == []
        events = [line["event"] for line in logs]
        assert "tool_abandoned" in events
        assert "abandoned_tool_ended" in events


async def test_a_body_that_ends_well_all_the_same(autojump_clock, open_bench):
    """A body that takes its cancellation for a hint and returns has completed."""

    @tool
    async def stubborn() -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
        return "done at last"

    async with open_bench(stubborn) as bench:
        running = await bench.begin("stubborn")
        running.interrupt("cancel")
        await running.done.wait()
        assert running.outcome == "completed_after_interrupt"


async def test_asking_the_token_cuts_the_tool(autojump_clock, open_bench):
    """The token that a tool was given is linked to its scope."""
    tokens = []

    @tool
    async def work(context: ToolContext) -> None:
        tokens.append(context.token)
        await trio.sleep_forever()

    async with open_bench(work) as bench:
        running = await bench.begin("work")
        tokens[0].request()
        assert running.is_cut
        await running.done.wait()
        assert running.outcome == "effect_unknown"


async def test_the_token_is_asked_when_the_tool_is_cut(autojump_clock, open_bench):
    """A grace leaves the token quiet; the cut asks it, and what is forced says so."""
    seen = []

    @tool(policy=finish(2))
    async def work(context: ToolContext) -> None:
        seen.append(context)
        await trio.sleep_forever()

    async with open_bench(work) as bench:
        running = await bench.begin("work")
        (context,) = seen
        assert not context.is_stopping
        running.interrupt("barge_in")
        assert context.is_stopping
        assert not context.token.is_requested
        running.interrupt("emergency_stop")
        assert context.token.is_requested
        assert context.token.is_forced


async def test_the_token_tells_of_the_background(autojump_clock, open_bench):
    """A tool that polls can see that nobody waits for it any more."""
    seen = []

    @tool
    async def work(context: ToolContext) -> None:
        seen.append(context.token)
        await trio.sleep(3)

    async with open_bench(work) as bench:
        running = await bench.begin("work")
        running.to_background()
        assert seen[0].is_background_requested


@pytest.mark.parametrize("permission", ["auto", "ask"])
async def test_the_end_of_the_call_ends_it(autojump_clock, open_bench, permission):
    """A call that is over leaves no tool behind, and each has its result in the history."""
    async with open_bench(sleeper(shield(60), permission=permission)) as bench:
        running = bench.start("work")
        await trio.sleep(1)
    assert trio.current_time() == 1
    assert running.done.is_set()
    assert running.outcome == {"auto": "effect_unknown", "ask": "withdrawn"}[permission]
    (entry,) = (e for e in bench.call.history.entries if e.role == "tool")
    assert entry.result == running.final


async def test_a_late_result_reaches_the_history(autojump_clock, open_bench):
    """What ends after its turn was cut is published all the same, and lands in its entry."""
    async with open_bench(sleeper(shield(60))) as bench:
        running = await bench.begin("work")
        bench.caller.publish(UserStartedSpeaking())
        running.interrupt("barge_in")
        await running.done.wait()
        assert bench.run.is_cut
        assert bench.results() == [("c1", "completed_after_interrupt")]
        (entry,) = (e for e in bench.call.history.entries if e.role == "tool")
        assert entry.result == running.final
