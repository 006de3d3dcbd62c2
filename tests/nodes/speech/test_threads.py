"""Threads of an engine that all calls share, and what a thread that hangs does to the others."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import trio

from bargein.nodes.speech import SpeechEngineError, _threads
from bargein.nodes.speech._threads import EngineThreads


@pytest.fixture
def stuck() -> Iterator[threading.Event]:
    """What a hanging thread waits for; set at the end."""
    event = threading.Event()
    yield event
    event.set()


async def test_one_at_a_time_and_errors_are_raised() -> None:
    """The second function runs when the first has ended; what one raises, its caller gets."""
    threads = EngineThreads("tester")
    running, most = 0, 0

    def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        threading.Event().wait(0.02)
        running -= 1

    def fail() -> None:
        raise LookupError("mine")

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(threads.run, work)
    assert most == 1
    with pytest.raises(LookupError, match="mine"):
        await threads.run(fail)
    assert await threads.run(lambda: 7) == 7


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_thread_that_hangs_holds_up_nobody(
    stuck: threading.Event, is_cancelled: bool
) -> None:
    """A second caller is served within 2 s, whether the first still waits or has given up."""
    limiter = trio.CapacityLimiter(1)
    threads = EngineThreads("tester", limiter)
    async with trio.open_nursery() as nursery:
        first = trio.CancelScope()

        async def hang() -> None:
            with first:
                await threads.run(stuck.wait)

        nursery.start_soon(hang)
        await trio.testing.wait_all_tasks_blocked()
        if is_cancelled:
            first.cancel()
        with trio.fail_after(2):
            assert await threads.run(lambda: "heard") == "heard"
        assert limiter.total_tokens == 2
        stuck.set()
        with trio.fail_after(5):
            while limiter.total_tokens > 1:  # noqa: ASYNC110 - a thread's end is no event of ours
                await trio.sleep(0.01)
    assert limiter.borrowed_tokens == 0


async def test_a_caller_does_not_wait_for_ever(
    stuck: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever's thread hangs is told, and so is everybody once too many are lost."""
    monkeypatch.setattr(_threads, "GIVE_UP_S", 0.2)
    monkeypatch.setattr(_threads, "LATE_S", 0.05)
    threads = EngineThreads("tester")
    for _ in range(7):
        with pytest.raises(SpeechEngineError, match=r"tester does not answer within 0\.2 s"):
            await threads.run(stuck.wait)
