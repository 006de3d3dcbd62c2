"""Questions whether a tool may run."""

from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from bargein.events import (
    PermissionAnswered,
    PermissionRequested,
)
from tests.held_answer import held_answer


@asynccontextmanager
async def open_answer():
    """A call with a run that lasts until it is cut."""
    async with held_answer() as (caller, run), trio.open_nursery() as nursery:
        yield caller, caller.call.permissions, run, nursery
        nursery.cancel_scope.cancel()


async def asked(nursery, permissions, run, id="1", name="pay"):
    """Ask in a task, and return the list that will hold the verdict."""
    verdicts = []

    async def ask():
        verdicts.append(await permissions.ask(id, name, {"eur": 5}, run))

    nursery.start_soon(ask)
    await trio.testing.wait_all_tasks_blocked()
    return verdicts


async def test_a_question_is_published_and_waits(autojump_clock):
    """Asking publishes what is asked, lists it, and waits for as long as it takes."""
    async with open_answer() as (caller, permissions, run, nursery):
        verdicts = await asked(nursery, permissions, run)
        await trio.sleep(1000)
        (question,) = permissions.pending
        assert not verdicts
        assert (question.id, question.name, question.arguments) == ("1", "pay", {"eur": 5})
        assert question.run is run
        assert question.asked_at_s == trio.current_time() - 1000
        requested = PermissionRequested(id="1", name="pay", arguments={"eur": 5})
        assert caller.events(PermissionRequested) == [requested]


@pytest.mark.parametrize(("allow", "verdict"), [(True, "allowed"), (False, "denied")])
async def test_an_answer_closes_the_question(autojump_clock, allow, verdict):
    """The first answer counts and is published; a second one is stale."""
    async with open_answer() as (caller, permissions, run, nursery):
        verdicts = await asked(nursery, permissions, run)
        assert permissions.respond("1", allow)
        assert not permissions.respond("1", not allow)
        assert permissions.pending == ()
        await trio.testing.wait_all_tasks_blocked()
        assert verdicts == [verdict]
        answered = PermissionAnswered(id="1", name="pay", verdict=verdict)
        assert caller.events(PermissionAnswered) == [answered]


async def test_an_answer_to_no_question_is_stale(autojump_clock):
    """An unknown id is answered with False and nothing is published."""
    async with open_answer() as (caller, permissions, _, _):
        assert not permissions.respond("9", True, remember=True)
        assert not permissions.withdraw("9")
        assert caller.events(PermissionAnswered) == []


@pytest.mark.parametrize(("allow", "verdict"), [(True, "allowed"), (False, "denied")])
async def test_a_remembered_answer_holds_for_the_tool(autojump_clock, allow, verdict):
    """What is remembered answers further calls of the tool, and of no other, without a question."""
    async with open_answer() as (caller, permissions, run, nursery):
        await asked(nursery, permissions, run)
        permissions.respond("1", allow, remember=True)
        assert caller.events(PermissionAnswered)[0].remembered
        assert await asked(nursery, permissions, run, "2") == [verdict]
        assert await asked(nursery, permissions, run, "3", "refund") == []
        assert [r.id for r in caller.events(PermissionRequested)] == ["1", "3"]


async def test_a_background_job_always_asks(autojump_clock):
    """No remembered answer speaks for a job that nobody waits for."""
    async with open_answer() as (_, permissions, run, nursery):
        await asked(nursery, permissions, run)
        permissions.respond("1", True, remember=True)
        assert await asked(nursery, permissions, None, "2") == []
        assert [q.id for q in permissions.pending] == ["2"]


async def test_a_withdrawn_question_is_neither_yes_nor_no(autojump_clock):
    """Withdrawing closes the question in the same step, and remembers nothing."""
    async with open_answer() as (caller, permissions, run, nursery):
        verdicts = await asked(nursery, permissions, run)
        assert permissions.withdraw("1")
        assert not permissions.withdraw("1")
        assert caller.events(PermissionAnswered) == [
            PermissionAnswered(id="1", name="pay", verdict="withdrawn")
        ]
        assert not permissions.respond("1", True, remember=True)
        await trio.testing.wait_all_tasks_blocked()
        assert verdicts == ["withdrawn"]
        assert await asked(nursery, permissions, run, "2") == []


async def test_cancelling_the_wait_withdraws_the_question(autojump_clock):
    """Whoever stops waiting for an answer withdraws the question."""
    async with open_answer() as (caller, permissions, run, _):
        with trio.move_on_after(3) as scope:
            await permissions.ask("1", "pay", {}, run)
        assert scope.cancelled_caught
        assert permissions.pending == ()
        assert [a.verdict for a in caller.events(PermissionAnswered)] == ["withdrawn"]


async def test_a_run_that_was_cut_asks_no_question(autojump_clock):
    """After the cut nothing is asked, not even where an answer is remembered."""
    async with open_answer() as (caller, permissions, run, nursery):
        await asked(nursery, permissions, run)
        permissions.respond("1", True, remember=True)
        run.cut()
        assert await asked(nursery, permissions, run, "2") == ["withdrawn"]
        assert len(caller.events(PermissionRequested)) == 1


async def test_questions_wait_side_by_side(autojump_clock):
    """Several questions are listed in order, and each is answered by its id."""
    async with open_answer() as (_, permissions, run, nursery):
        first = await asked(nursery, permissions, run, "1")
        second = await asked(nursery, permissions, run, "2", "refund")
        assert [q.id for q in permissions.pending] == ["1", "2"]
        permissions.respond("2", False)
        permissions.respond("1", True)
        await trio.testing.wait_all_tasks_blocked()
        assert (first, second) == (["allowed"], ["denied"])


async def test_a_question_has_an_id_of_its_own(autojump_clock):
    """The same id cannot be asked for twice at the same time."""
    async with open_answer() as (_, permissions, run, nursery):
        await asked(nursery, permissions, run)
        with pytest.raises(ValueError, match="'1' for 'pay' is being asked for already"):
            await permissions.ask("1", "pay", {}, run)
