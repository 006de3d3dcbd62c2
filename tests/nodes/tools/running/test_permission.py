"""A tool that asks before it runs."""

import pytest
import trio
import trio.testing

from bargein.control import VERBS
from bargein.events import PermissionAnswered, PermissionRequested
from bargein.tools import shield

from .bench import sleeper


async def test_a_tool_asks_and_runs_when_allowed(autojump_clock, open_bench):
    """Before the reply nothing runs, and the answer says that it waits."""
    async with open_bench(sleeper(permission="ask")) as bench:
        running = bench.start("work", seconds=1)
        await trio.sleep(5)
        answer = bench.call.answer_of(bench.run)
        assert answer.phase == "permission"
        assert running.started_at_s is None
        assert running in bench.call.running_tools.of(bench.run)
        (asked,) = bench.caller.events(PermissionRequested)
        assert asked == PermissionRequested(id="c1", name="work", arguments={"seconds": 1})
        assert bench.call.permissions.respond("c1", True)
        result = await running.result()
        assert trio.current_time() == 6
        assert answer.phase == "tool"
        assert (result.outcome, result.ran_s) == ("completed", 1.0)


async def test_a_tool_may_be_the_operators_to_allow(autojump_clock, open_bench):
    """The question says that it is the operator's, and the tool waits for it as for any."""
    async with open_bench(sleeper(permission="operator")) as bench:
        running = bench.start("work", seconds=1)
        await trio.testing.wait_all_tasks_blocked()
        (question,) = bench.call.permissions.pending
        assert question.by == "operator"
        assert running.started_at_s is None
        assert bench.call.permissions.respond("c1", True)
        assert (await running.result()).outcome == "completed"


async def test_a_denied_tool_does_not_run(autojump_clock, open_bench):
    """A "no" reaches the model as the user's."""
    async with open_bench(sleeper(permission="ask")) as bench:
        running = bench.start("work")
        await trio.testing.wait_all_tasks_blocked()
        bench.call.permissions.respond("c1", False)
        result = await running.result()
        assert result.outcome == "denied"
        assert result.content.startswith("The user denied permission: it was not run.")
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
        bench.call.router.listen(run_cut=lambda run: None)  # nobody tells the tool
        running = bench.start("work")
        await trio.testing.wait_all_tasks_blocked()
        bench.run.cut()
        bench.call.permissions.respond("c1", True)
        await running.done.wait()
        assert running.started_at_s is None
        assert running.outcome in ("not_started", "withdrawn")


async def test_two_questions_of_an_answer(autojump_clock, open_bench):
    """An answer waits for permission until the last of its questions is closed."""
    async with open_bench(sleeper(permission="ask")) as bench:
        bench.start("work", seconds=1)
        bench.start("work", seconds=2)
        await trio.testing.wait_all_tasks_blocked()
        answer = bench.call.answer_of(bench.run)
        bench.call.permissions.respond("c1", True)
        await trio.testing.wait_all_tasks_blocked()
        assert answer.phase == "permission"
        bench.call.permissions.respond("c2", True)
        await trio.testing.wait_all_tasks_blocked()
        assert answer.phase == "tool"
