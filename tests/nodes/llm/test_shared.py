"""A resource that a run shares."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from bargein.nodes.llm._shared_resource import Shared


class Lamp:
    """Counts how often it is on."""

    def __init__(self, *, warm_up_s: float = 0.0, failures: int = 0) -> None:
        self.log: list[str] = []
        self.warm_up_s = warm_up_s
        self.failures = failures

    @asynccontextmanager
    async def open(self) -> AsyncIterator[object]:
        """Switch it on for the block."""
        await trio.sleep(self.warm_up_s)
        if self.failures:
            self.failures -= 1
            raise KeyError("no power")
        self.log.append("on")
        try:
            yield object()
        finally:
            with trio.move_on_after(1, shield=True):
                await trio.sleep(0.1)
            self.log.append("off")


async def test_blocks_share_it(autojump_clock) -> None:
    """Overlapping blocks open it once, and the last to leave closes it before it goes on."""
    lamp = Lamp(warm_up_s=1)
    shared = Shared(lamp.open)
    async with shared.hold() as first:
        async with shared.hold() as second:
            assert first is second is await shared.get()
        assert lamp.log == ["on"]
    assert lamp.log == ["on", "off"]
    async with shared.hold() as third:
        assert third is not first
    assert lamp.log == ["on", "off"] * 2


async def test_first_user_may_be_cut(autojump_clock) -> None:
    """A user that is cancelled while it opens does not stop the opening."""
    lamp = Lamp(warm_up_s=2)
    shared = Shared(lamp.open)
    with trio.move_on_after(1):
        await shared.get()
    start = trio.current_time()
    await shared.get()
    assert trio.current_time() - start == 1
    assert lamp.log == ["on"]


async def test_failure_is_raised_and_tried_anew(autojump_clock) -> None:
    """Whoever waits gets the error of the opening; the next one opens again."""
    lamp = Lamp(failures=2)
    shared = Shared(lamp.open)
    with pytest.raises(KeyError, match="no power"):
        await shared.get()
    with pytest.raises(KeyError, match="no power"):
        async with shared.hold():
            pytest.fail("entered a block without what it holds")
    async with shared.hold():
        assert lamp.log == ["on"]


async def test_drop(autojump_clock) -> None:
    """A dropped one is closed and replaced; one that was replaced already cannot be dropped."""
    lamp = Lamp()
    shared = Shared(lamp.open)
    async with shared.hold() as old:
        shared.drop(old)
        new = await shared.get()
        assert new is not old
        shared.drop(old)
        assert await shared.get() is new
    await trio.sleep(1)
    assert sorted(lamp.log) == ["off", "off", "on", "on"]


def test_ends_with_the_run() -> None:
    """Without a block it closes when the run ends; the next run opens its own."""
    lamp = Lamp()
    shared = Shared(lamp.open)

    async def main() -> None:
        await shared.get()
        async with shared.hold():
            pass
        assert lamp.log[-1] == "on"  # somebody uses it without a block: it stays

    for _ in range(2):
        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert lamp.log == ["on", "off"] * 2


async def test_block_that_is_cancelled(autojump_clock) -> None:
    """Leaving a block by cancellation closes it too, before the block is left."""
    lamp = Lamp()
    shared = Shared(lamp.open)
    with trio.move_on_after(1):
        async with shared.hold():
            await trio.sleep_forever()
    assert lamp.log == ["on", "off"]
