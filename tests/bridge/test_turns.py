"""Turns and the runs that work on them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import trio
import trio.testing

from bargein.bridge.answers._answer import Turns, outermost
from bargein.bridge.playout._utterance import Utterance
from bargein.events import DTMFInput, UserStoppedSpeaking
from bargein.routes import Message, Run, current_run, open_router


async def a_run(nursery: trio.Nursery, router: Any, name: str) -> Run:
    """A run of a bridge of this name that goes on until the router closes."""
    runs: list[Run] = []

    async def generate(message: Message) -> AsyncIterator[object]:
        run = current_run()
        assert run is not None
        runs.append(run)
        await trio.sleep_forever()
        yield

    router.on(UserStoppedSpeaking, name=name, source=name).stream(generate)
    router.publish(UserStoppedSpeaking(), name)
    await trio.testing.wait_all_tasks_blocked()
    return runs[0]


async def test_turns_count_from_one(autojump_clock):
    """Numbers rise by one; a turn that no run gives belongs to no run."""
    turns = Turns()
    first, second = turns.open(None, "a"), turns.open(None, "b")
    assert (first.number, second.number) == (1, 2)
    assert list(turns) == [first, second]
    assert turns.of(None) is None
    turns.close(first)
    assert list(turns) == [second]
    assert first.is_over
    assert turns.generating(lambda agent: agent == "b")
    assert not turns.generating(lambda agent: agent == "a")


async def test_a_run_belongs_to_the_turn_it_opened_or_joined(autojump_clock, nursery):
    """A turn is found by its runs until it is over, and a run that left is not active."""
    async with open_router() as router:
        one, two = await a_run(nursery, router, "one"), await a_run(nursery, router, "two")
        turns = Turns()
        turn = turns.open(one, "agent")
        turns.join(turn, two)
        assert turns.of(one) is turns.of(two) is turn
        assert turn.active == [one, two]
        turns.leave(turn, two)
        assert turns.of(two) is None
        turns.leave(turn, one)
        assert turns.of(one) is turn
        assert turn.active == []
        later = turns.open(one, "agent")
        turns.close(turn)
        assert turns.of(one) is later
        turns.close(later)
        assert turns.of(one) is None


async def test_a_turn_is_stale_with_any_of_its_runs(autojump_clock, nursery):
    """The run that opened it, one that works on it, or one that gave text of it."""
    async with open_router() as router:
        run = await a_run(nursery, router, "one")
        turns = Turns()
        turn, other = turns.open(run, "agent"), turns.open(None, "agent")
        utterance = Utterance(1, other, interruptible=True)
        utterance.runs.append(run)
        other.utterances.append(utterance)
        assert not turn.is_stale
        assert not other.is_stale
        run.cut()
        assert turn.is_stale
        assert other.is_stale


async def test_heard_of_a_turn_is_a_prefix(autojump_clock):
    """What was heard of a later utterance does not count behind a hole."""
    turn = Turns().open(None, "agent")
    for number, text, chars in ((1, "One ", 4), (2, "two ", 3), (3, "three", 5)):
        utterance = Utterance(number, turn, interruptible=True)
        utterance.generated, utterance.heard_chars = text, chars
        turn.utterances.append(utterance)
    assert turn.generated == "One two three"
    assert turn.heard == "One two"
    assert turn.is_heard_whole  # but for white space
    turn.utterances[1].heard_chars = 0
    assert turn.heard == "One "
    assert not turn.is_heard_whole
    assert turn.basis == "clock"
    turn.utterances[0].basis = "words"
    turn.utterances[2].heard_chars = 0
    assert turn.basis == "words"


async def test_the_outermost_run_is_of_the_same_bridge_and_running(autojump_clock, nursery):
    """A chain of an agent's own routes is one answer; another bridge's is not."""
    found: dict[str, tuple[Run | None, Run | None]] = {}

    async def first(message: Message) -> AsyncIterator[object]:
        yield DTMFInput(button="1")
        await trio.sleep(1)
        yield DTMFInput(button="3")

    async def second(message: Message) -> AsyncIterator[object]:
        run = current_run()
        found[message.event.button] = (run, outermost(run))
        await trio.sleep(5)
        found["later"] = (run, outermost(run))
        yield

    async with open_router() as router:
        router.on(UserStoppedSpeaking, name="agent").stream(first).broadcast()
        router.on(DTMFInput, name="agent", button="1").stream(second)
        router.on(DTMFInput, name="other", button="3").stream(second)
        router.publish(UserStoppedSpeaking())
        await trio.sleep(0.5)
        run, out = found["1"]
        assert run is not None
        assert out is run.parent
        await trio.sleep(2)
        run, out = found["3"]
        assert out is run
        await trio.sleep(5)
        run, out = found["later"]
        assert out is run
    assert outermost(None) is None
