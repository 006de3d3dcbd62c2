"""Calls of many processes in virtual time, which crash, hang and are cut off from their Redis.

The stores and their writers are the real ones; the Redis is a fake, which looks at each write that
no fence is in force but the last one.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import structlog
import trio
import trio.testing

from bargein.bridge.takeover._journal_writer import JournalStoreError, WaitingJournal
from bargein.bridge.takeover._redis_journals import RedisJournals

from .fake_redis import FakeRedis

WRITES_S = 2.0
"""How often a call writes a position, in seconds."""


class Node:
    """A process: a store, and the calls whose lines it has."""

    def __init__(self, redis: FakeRedis, nursery: trio.Nursery) -> None:
        self.store = RedisJournals(redis.connection_to)
        self.scope = trio.CancelScope()
        self.is_alive = True
        self.store.listen(taken_for_dead=lambda: None, wanted=self._give)
        self._nursery = nursery
        nursery.start_soon(self._run)

    async def _run(self) -> None:
        with self.scope:
            await self.store.run()

    def crash(self) -> None:
        """End as a process that is killed."""
        self.is_alive = False
        self.scope.cancel()

    def _give(self, call_id: str) -> None:
        journal = self.store.writer.journal_of(call_id)
        if journal is not None:
            self._nursery.start_soon(self._close, journal)

    async def _close(self, journal: WaitingJournal) -> None:
        with trio.move_on_after(2):
            await journal.close(forget=False)


async def pause(seconds: float) -> None:
    """Sleep to the next tenth of a second, so that the clock jumps less often."""
    await trio.sleep_until(math.ceil((trio.current_time() + seconds) * 10) / 10)


@dataclass
class Outcome:
    """What a simulation saw."""

    calls: int
    lost: int
    moves: int
    longest_s: float
    asked: Counter[str]
    seconds: float


async def simulate(nodes: int, calls: int, seconds: float, seed: int) -> Outcome:
    """Run calls, and everything that can befall their processes.

    Args:
        nodes: How many processes there are.
        calls: How many calls.
        seconds: How long, in virtual time.
        seed: Of all that is random.
    """
    chance, redis = random.Random(seed), FakeRedis()
    moves, away_s, lost = Counter[str](), [0.0], []
    until_s = trio.current_time() + seconds

    async def caller(call_id: str) -> None:
        node = chance.choice(living())
        journal = await node.store.open(call_id)
        journal.on_lost = lambda: rewrite()
        count = 0

        def rewrite() -> None:
            journal.write("count", str(count))

        while True:
            await pause(chance.uniform(0.5, 1.5) * WRITES_S)
            if node.is_alive and not journal.fenced.is_set() and chance.random() > 0.01:
                if trio.current_time() >= until_s and await journal.kept():
                    try:
                        read = await node.store.read(call_id)
                    except JournalStoreError:
                        continue  # cut off meanwhile
                    if read is None or read.records.get("count", "0") != str(count):
                        lost.append(call_id)
                    return
                count += 1
                journal.write("count", str(count))
                continue
            left_s = trio.current_time()
            while True:
                await pause(chance.uniform(0.05, 0.5))
                node = chance.choice(living())
                own = node.store.writer.journal_of(call_id)
                if own is not None:
                    journal = own
                    break
                try:
                    read = await node.store.read(call_id)
                    if read is None:
                        lost.append(call_id)
                        return
                    taken = await node.store.claim(call_id, read.fence)
                except JournalStoreError:
                    continue
                if taken is not None:
                    journal, records = taken
                    journal.on_lost = rewrite
                    count = max(count, int(records.get("count", "0")))
                    # A Redis that fails over loses what it was told last, and what waited then was
                    # lost with its process: whoever takes a call tells all that its client knows.
                    rewrite()
                    moves["taken"] += 1
                    break
            away_s.append(trio.current_time() - left_s)

    def living() -> list[Node]:
        return [node for node in all_nodes if node.is_alive]

    async def trouble(nursery: trio.Nursery) -> None:
        while trio.current_time() < until_s - 8:
            await trio.sleep(chance.uniform(0.5, 1.5) * 40 / nodes)
            node = chance.choice(living())
            if chance.random() < 0.5:
                node.crash()
                all_nodes.append(Node(redis, nursery))
                moves["crashes"] += 1
            else:
                nursery.start_soon(cut_off, node)
                moves["cut off"] += 1

    async def cut_off(node: Node) -> None:
        connection: Any = node.store.connection
        connection.is_lost = True
        await trio.sleep(chance.uniform(0.5, 6))
        connection.is_lost = False

    async def fail_over() -> None:
        await trio.sleep(seconds / 2)
        saved = redis.saved()
        await trio.sleep(0.3)
        redis.is_lost = True
        await trio.sleep(3)
        redis.fail_over(saved)
        redis.is_lost = False

    async with trio.open_nursery() as everything:
        all_nodes = [Node(redis, everything) for _ in range(nodes)]
        await trio.sleep(1)
        everything.start_soon(trouble, everything)
        everything.start_soon(fail_over)
        async with trio.open_nursery() as callers:
            for number in range(calls):
                callers.start_soon(caller, f"c{number}")
        everything.cancel_scope.cancel()
    return Outcome(calls, len(lost), moves.total(), max(away_s), redis.asked, seconds)


def run(nodes: int, calls: int, seconds: float, seed: int) -> Outcome:
    """Simulate in virtual time; see ``simulate()``."""
    clock = trio.testing.MockClock(autojump_threshold=0)
    with structlog.testing.capture_logs():
        return trio.run(simulate, nodes, calls, seconds, seed, clock=clock)


def main() -> None:
    """Print what 1,000 processes and 100,000 calls ask of a Redis."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began_s = time.process_time()
    outcome = run(asked.nodes, asked.calls, asked.seconds, asked.seed)
    tell(outcome)
    print(f"{time.process_time() - began_s:.0f} s of processor time")
    assert outcome.lost == 0


def tell(outcome: Outcome) -> None:
    """Print an outcome."""
    print(
        f"{outcome.calls} calls, {outcome.lost} lost, {outcome.moves} crashes, cuts and take-overs;"
        f" the longest time without a server {outcome.longest_s:.1f} s"
    )
    each = {name: round(count / outcome.seconds) for name, count in outcome.asked.most_common()}
    print(f"commands a second: {sum(each.values())}, of these {each}")


if __name__ == "__main__":
    main()
