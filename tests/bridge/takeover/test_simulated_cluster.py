"""Many processes and calls in virtual time, over a fake Redis that does what a real one does."""

from __future__ import annotations

import random

import pytest

from bargein.bridge.takeover._redis_connection import RedisConnection
from bargein.bridge.takeover._redis_scripts import TAKE, WRITE, digest

from .fake_redis import FakeRedis
from .redis_server import redis_server
from .simulated_cluster import run, tell

pytestmark = pytest.mark.proof


def test_one_fence_is_in_force_at_every_moment():
    """Processes crash, hang and are cut off, and Redis fails over; no call is lost."""
    outcome = run(nodes=10, calls=1000, seconds=20, seed=1)
    tell(outcome)
    assert outcome.lost == 0
    assert outcome.longest_s < 10


async def test_the_fake_scripts_answer_as_the_real_ones(tmp_path, nursery):
    """Random writes, takes and endings, by owners and fences of whoever."""
    with redis_server(tmp_path) as server:
        real = RedisConnection(server.url, scripts=(WRITE, TAKE))
        nursery.start_soon(real.run)
        fake, chance, fences = FakeRedis(), random.Random(1), [(0, 0)]
        for _ in range(400):
            key, owner = f"bargein:{{{chance.randrange(3)}}}", chance.choice("ab")
            at = chance.choice(fences[-4:])
            if chance.random() < 0.7:
                puts = [str(chance.randrange(3)) for _ in range(2 * chance.randrange(3))]
                ending = chance.choice(["", "", "", "free", "forget"])
                left = f"{chance.randrange(3)} 60000 {chance.choice([0, 0, 1])} {ending}"
                heads = tuple(f"{owner} {one} {left} {len(puts) // 2}" for one in at)
                command = [digest(WRITE), 1, key, heads, *puts, "1"]
            else:
                command = [digest(TAKE), 1, key, owner, chance.choice(["", "a", "b"]), at, 60_000]
            fake.fences.clear()  # here fences may be anybody's
            (answer,) = await real.ask(("EVALSHA", *[_of(part, 0) for part in command]))
            told = fake.do("EVALSHA", *[_of(part, 1) for part in command])
            if isinstance(answer, list) and answer[0] == b"kept":
                assert told[0] == b"kept"
                fences.append((int(answer[1]), int(told[1])))
            elif isinstance(answer, list) and answer[0] in (b"fenced", b"lost"):
                assert told == answer
            elif answer:
                pairs = dict(zip(answer[::2], answer[1::2], strict=True))
                assert _records(told) == _records(pairs)
                fences.append((int(pairs[b"=fence"]), int(told[b"=fence"])))
            else:
                assert told is None
        nursery.cancel_scope.cancel()


def _of(part, side):
    """A fence is that of the real one, or of the fake one."""
    return part[side] if isinstance(part, tuple) else part


def _records(found):
    clocks = (b"=at", b"=opened", b"=fence")
    return {name: value for name, value in found.items() if name not in clocks}
