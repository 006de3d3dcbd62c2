"""What each verb does to a tool of each policy."""

import math

import pytest
import trio
import trio.testing

from bargein.control import VERBS, StillRunning
from bargein.tools import finish, shield, tool

from .bench import CUTTING, FORCED, UNKNOWN, sleeper


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
        assert (running.final.content, running.final.ran_s) == (UNKNOWN, 3.0)
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
        assert result.content == (
            "worked\nIt had been asked to stop, and completed all the same: do not run it again."
        )


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
    """Under `detach` it leaves its answer at once, and its final result comes once, at the end."""
    async with open_bench(sleeper("detach")) as bench:
        running = await bench.begin("work")
        settled = []
        running.on_settled = lambda *what: settled.append((trio.current_time(), *what))
        assert running.consequence(verb) == "continues in the background"
        assert running.interrupt(verb) == StillRunning("c1", "work", "detach", math.inf)
        assert running.run is None
        assert bench.call.running_tools.jobs == (running,)
        assert bench.call.running_tools.of(bench.run) == ()
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
async def test_no_policy_delays_what_is_forced(autojump_clock, open_bench, verb, policy):
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
    """`resume` does not interrupt: a running tool continues, and a stopping one stops."""
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
        assert len(bench.call.running_tools) == 0


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
