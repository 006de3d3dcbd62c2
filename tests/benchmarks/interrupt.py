"""Load 3: from the interrupt to the node's ``finally``.

Every conversation sends a chunk every 20 ms.  One at a time is interrupted, at a random moment of
its 20 ms, and started again.  Both sides run in one process and take turns, and before each of them
a conversation that is not measured is interrupted: what a side finds in the processor's caches is
then what another call left there, as in a server.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import chain
from time import perf_counter_ns

import trio
import trio.testing

from bargein.routes import open_router

from ._bare import Conversation, Table
from ._events import Chunk, Start, Stop
from ._measure import Row, Size, compare_in_turns

EVERY_S = 0.02
ROUND_S = 3.0

Publish = Callable[[object, str], object]
OpenPairs = Callable[[AsyncExitStack, int], Awaitable["Pairs"]]
"""Starts that many conversations, which end with the stack."""


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

    async def interrupted(self, publish: Publish) -> float:
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


Pairs = Sequence[tuple[Node, Publish]]
"""Nodes of one side, and what publishes their events."""


def in_turns(
    open_bare: OpenPairs, open_ours: OpenPairs, conversations: int, interrupts: int
) -> tuple[list[float], list[float]]:
    """Interrupt both sides in turns, and return how long each interrupt took, in µs.

    Args:
        open_bare: Starts conversations of the baseline.
        open_ours: Starts conversations of the judged side.
        conversations: How many run on each side.
        interrupts: How often each side is interrupted.
    """

    async def main() -> tuple[list[float], list[float]]:
        async with AsyncExitStack() as stack:
            bare = await open_bare(stack, conversations)
            *ours, other = await open_ours(stack, conversations + 1)
            await trio.testing.wait_all_tasks_blocked()
            return await _timed(bare, ours, other, interrupts)

    return trio.run(main)


async def _timed(
    bare: Pairs, ours: Pairs, other: tuple[Node, Publish], interrupts: int
) -> tuple[list[float], list[float]]:
    started = [other, *chain.from_iterable(zip(bare, ours, strict=True))]
    for node, publish in started:
        publish(node.start(), "caller")
        await node.running.wait()
        await trio.sleep(EVERY_S / len(started))
    chance = random.Random(1)
    samples: tuple[list[float], list[float]] = ([], [])
    began_s = trio.current_time()
    for number in range(interrupts):
        if samples[0] and trio.current_time() > began_s + ROUND_S:
            break  # the machine is too slow for the load; the figures show it
        for pairs, taken in zip((bare, ours), samples, strict=True):
            for node, publish in (other, pairs[number * 7 % len(pairs)]):
                await trio.sleep(chance.uniform(0, 0.003))
                took = await node.interrupted(publish)
            taken.append(took)
    return samples


def _drop(_: object) -> None:
    """Take a chunk."""


def bare_of(made: Callable[[], Node]) -> OpenPairs:
    """Return what starts conversations of such nodes in bare trio."""

    async def open_bare(stack: AsyncExitStack, conversations: int) -> Pairs:
        nursery = await stack.enter_async_context(trio.open_nursery())
        stack.callback(nursery.cancel_scope.cancel)
        pairs = []
        for _ in range(conversations):
            table, node = Table(), made()
            table.on(type(node.chunk), _drop)
            Conversation(nursery, table, node.start, node.stop, node.generate, waits=True)
            pairs.append((node, table.publish))
        return pairs

    return open_bare


async def _open_engines(stack: AsyncExitStack, conversations: int) -> Pairs:
    pairs = []
    for _ in range(conversations):
        router, node = await stack.enter_async_context(open_router()), Node()
        router.add_sink(_drop, Chunk)
        route = router.on(Start, name="agent").interrupt_on(Stop)
        route.stream(node.generate).broadcast()
        pairs.append((node, router.publish))
    return pairs


def rows(size: Size) -> list[Row]:
    """Run the load."""
    return [
        compare_in_turns(
            f"interrupt to finally, {conversations} conversation{'s' * (conversations > 1)}", "us",
            partial(in_turns, bare_of(Node), _open_engines, conversations, size.interrupts),
            rounds=size.interrupt_rounds, bound=1.5,
        )
        for conversations in (1, size.conversations)
    ]  # fmt: skip
