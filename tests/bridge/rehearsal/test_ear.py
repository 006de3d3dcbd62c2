"""Tests of what the simulated caller perceives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from bargein import App
from bargein.bridge.rehearsal._ear import Ear
from bargein.bridge.rehearsal._observer import Observer
from bargein.events import UserStartedSpeaking, UserStoppedSpeaking
from bargein.rehearsal import Perception

Ring = Callable[[App], Any]


async def listen(ear: Ear, until_s: float) -> Perception:
    """Keep an ear up to date until a moment, and return what is perceived then."""
    while trio.current_time() < until_s:
        await trio.sleep(0.02)
        ear.tick(trio.current_time())
    return ear.perceive(trio.current_time())


async def test_what_is_heard_is_counted(
    autojump_clock: trio.testing.MockClock, ring: Ring, make_app: Callable[..., App]
) -> None:
    """The agent's speech is counted by the second and by the word, and silence after it."""
    async with ring(make_app(())) as caller:
        ear = Ear(caller)
        now = await listen(ear, 1.0)
        assert now.spoken_s == pytest.approx(0.06)
        assert now.heard == "hi"
        assert 0.8 < now.silent_s < 0.95
        assert now.state == "idle"
        assert [state for _, state in ear.states][-2:] == ["speaking", "idle"]
        assert sum(arrival.length for arrival in caller.arrivals) == 0.06 * 24_000


async def test_only_what_began_after_the_line_is_an_answer(
    autojump_clock: trio.testing.MockClock, ring: Ring, make_app: Callable[..., App]
) -> None:
    """An utterance that was under way when the caller began to speak does not answer them."""
    observer = Observer()
    async with ring(observer.watched(make_app(()))) as caller:
        ear = Ear(caller)
        await listen(ear, 0.5)
        assert observer.call is not None
        observer.call.publish(UserStartedSpeaking())
        observer.call.publish(UserStoppedSpeaking())
        assert (await listen(ear, 1.0)).spoken_s > 0.3
        ear.line_began(trio.current_time())
        assert (await listen(ear, 1.2)).spoken_s == 0
        observer.call.publish(UserStartedSpeaking())
        observer.call.publish(UserStoppedSpeaking())
        ear.line_ended(trio.current_time())
        now = await listen(ear, 3.0)
        assert now.heard == "a cappuccino then"
        assert now.spoken_s == pytest.approx(17 * 0.03)


async def test_messages_are_returned_once(
    autojump_clock: trio.testing.MockClock, ring: Ring, make_app: Callable[..., App]
) -> None:
    """Each message of the server is handed on once, in order."""
    async with ring(make_app(())) as caller:
        ear, seen = Ear(caller), []
        while trio.current_time() < 1.0:
            await trio.sleep(0.02)
            seen += ear.tick(trio.current_time())
        assert seen == caller.received
