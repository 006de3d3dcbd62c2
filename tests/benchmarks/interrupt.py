"""Load 3: from the interrupt to the node's ``finally``.

Every conversation sends a chunk every 20 ms.  One at a time is interrupted, at a random moment of
its 20 ms, and started again.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack
from time import perf_counter_ns
from typing import Any

import trio

from bargein.routes import open_router

from ._bare import Conversation, Table
from ._events import Chunk, Start, Stop
from ._measure import Row, Size, compare

EVERY_S = 0.02
ROUND_S = 1.5


class Node:
    """Sends a chunk every 20 ms, and records the time when it is interrupted."""

    start: type = Start
    stop: type = Stop
    chunk: object = Chunk(1)

    def __init__(self) -> None:
        self.running = trio.Event()
        self.over = trio.Event()
        self.over_ns = 0

    async def generate(self, _: object) -> AsyncGenerator[object, None]:
        try:
            self.running.set()
            next_s = trio.current_time()
            while True:
                yield self.chunk
                next_s += EVERY_S
                await trio.sleep_until(next_s)
        finally:
            self.over_ns = perf_counter_ns()
            self.over.set()

    async def interrupted(self, publish: Callable[[object, str], object]) -> float:
        """Interrupt the node, wait for its ``finally``, and return how long that took, in µs."""
        self.over, self.running = trio.Event(), trio.Event()
        began = perf_counter_ns()
        publish(self.stop(), "caller")
        await self.over.wait()
        took = (self.over_ns - began) / 1000
        publish(self.start(), "caller")
        await self.running.wait()
        return took


def _drop(_: object) -> None:
    """Take a chunk."""


async def timed(pairs: Sequence[tuple[Node, Any]], interrupts: int) -> list[float]:
    """Interrupt one after the other, and return how long each took, in µs."""
    for node, publish in pairs:
        publish(node.start(), "caller")
        await node.running.wait()
        await trio.sleep(EVERY_S / len(pairs))
    chance = random.Random(1)
    samples: list[float] = []
    began_s = trio.current_time()
    for number in range(interrupts):
        if samples and trio.current_time() > began_s + ROUND_S:
            break  # the machine is too slow for the load; the figures show it
        await trio.sleep(chance.uniform(0, 0.006))
        node, publish = pairs[number * 7 % len(pairs)]
        samples.append(await node.interrupted(publish))
    return samples


def bare(conversations: int, interrupts: int) -> list[float]:
    """Run conversations in bare trio, and return how long each interrupt took, in µs."""

    async def main() -> list[float]:
        async with trio.open_nursery() as nursery:
            pairs = []
            for _ in range(conversations):
                table, node = Table(), Node()
                table.on(Chunk, _drop)
                Conversation(nursery, table, Start, Stop, node.generate, waits=True)
                pairs.append((node, table.publish))
            samples = await timed(pairs, interrupts)
            nursery.cancel_scope.cancel()
        return samples

    return trio.run(main)


def _ours(conversations: int, interrupts: int) -> list[float]:
    async def main() -> list[float]:
        async with AsyncExitStack() as stack:
            pairs = []
            for _ in range(conversations):
                router, node = await stack.enter_async_context(open_router()), Node()
                router.add_sink(_drop, Chunk)
                route = router.on(Start, name="agent").interrupt_on(Stop)
                route.stream(node.generate).broadcast()
                pairs.append((node, router.publish))
            return await timed(pairs, interrupts)

    return trio.run(main)


def rows(size: Size) -> list[Row]:
    """Run the load."""
    return [
        compare(
            f"interrupt to finally, {conversations} conversation{'s' * (conversations > 1)}", "us",
            lambda: bare(conversations, size.interrupts),  # noqa: B023 - called before the next
            lambda: _ours(conversations, size.interrupts),  # noqa: B023
            rounds=size.interrupt_rounds, bound=bound,
        )
        for conversations, bound in ((1, 1.25), (size.conversations, 1.5))
    ]  # fmt: skip
