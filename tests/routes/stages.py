"""Events and functions for chains of stages."""

from typing import Literal

import trio

from bargein.routes import Event, open_router


class Go(Event):
    type: Literal["pl.go"] = "pl.go"
    n: int = 0


class Hold(Event):
    type: Literal["pl.hold"] = "pl.hold"


class Out(Event):
    type: Literal["pl.out"] = "pl.out"
    value: object = None


def out(value):
    return Out(value=value)


async def run_through(build, *, count=1):
    """Carry `count` triggers through a chain; return what came out, when, and what failed."""
    got, failures = [], []
    start_s = trio.current_time()
    async with open_router() as router:
        router.add_sink(lambda m: got.append((trio.current_time() - start_s, m.event.value)), Out)
        router.listen(failed=lambda run, route, stage, error: failures.append((stage, error)))
        build(router.on(Go))
        for n in range(count):
            router.publish(Go(n=n))
        await trio.sleep(100)
    return got, failures


def values(got):
    return [value for _, value in got]
