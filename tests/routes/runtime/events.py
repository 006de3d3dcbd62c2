"""Events and nodes for the tests of what a router does while it runs."""

from typing import Literal

import trio

from bargein import Event


class Go(Event):
    type: Literal["wk.go"] = "wk.go"
    n: int = 0


class Stop(Event):
    type: Literal["wk.stop"] = "wk.stop"


class Chunk(Event):
    type: Literal["wk.chunk"] = "wk.chunk"
    n: int = 0


async def second(message):
    """Gives one chunk after a second."""
    await trio.sleep(1)
    yield Chunk(n=message.event.n)


async def forever(message):
    await trio.sleep_forever()
    yield


async def later(message):
    """Gives its message back, from a coroutine."""
    return message


def chunks_of(router):
    got = []
    router.add_sink(lambda message: got.append((trio.current_time(), message.event.n)), Chunk)
    return got


def verdicts(router, route):
    return [decision.verdict for decision in router.runtime(route).decisions]
