"""The text for the model for each outcome of a tool."""

from contextlib import suppress
from typing import get_args

import trio
import trio.testing

from bargein.control import ToolOutcome
from bargein.tools import tool

from .bench import UNKNOWN, sleeper

AFTER = "\nIt had been asked to stop, and completed all the same: do not run it again."


@tool("late")
async def late() -> str:
    """Finish though it is cancelled."""
    with suppress(trio.Cancelled):
        await trio.sleep_forever()
    return "worked"


async def test_no_outcome_reads_like_another(autojump_clock, open_bench):
    """Each outcome has words of its own; no interrupt reads as a refusal, only a no does."""
    ways = {
        "not_started": (sleeper(), _cut_at_once),
        "cancelled_before_effect": (sleeper(read_only=True), _cut),
        "effect_unknown": (sleeper(), _cut),
        "completed": (sleeper(), _wait),
        "completed_after_interrupt": (late, _cut),
        "backgrounded": (sleeper("detach"), _cut),
        "timed_out": (sleeper(timeout_s=1.0), _wait),
        "denied": (sleeper(permission="ask"), _deny),
        "withdrawn": (sleeper(permission="ask"), _cut),
    }
    assert set(ways) == set(get_args(ToolOutcome))
    said = {}
    for outcome, (work, way) in ways.items():
        async with open_bench(work) as bench:
            running = bench.start(work.name)
            await way(bench, running)
            result = await running.result()
            assert result.outcome == outcome
            said[outcome] = result.content
    assert said["completed"] == "worked"
    assert said["completed_after_interrupt"] == "worked" + AFTER
    assert said["effect_unknown"] == UNKNOWN
    assert "verify before retrying" in said["timed_out"]
    assert "neither yes nor no" in said["withdrawn"]
    assert [outcome for outcome, words in said.items() if "denied" in words] == ["denied"]
    for outcome in ("not_started", "cancelled_before_effect", "effect_unknown"):
        assert "user" not in said[outcome]
    assert len(set(said.values())) == len(said)


async def _wait(bench, running):
    await trio.testing.wait_all_tasks_blocked()


async def _cut_at_once(bench, running):
    running.interrupt("cancel")


async def _cut(bench, running):
    await trio.testing.wait_all_tasks_blocked()
    running.interrupt("cancel")


async def _deny(bench, running):
    await trio.testing.wait_all_tasks_blocked()
    bench.call.permissions.respond("c1", False)
