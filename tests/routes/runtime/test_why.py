"""A route tells why it was cut, or was not."""

import trio

from bargein.routes import open_router

from .events import Go, Stop, forever, later, second


async def test_a_route_can_be_asked_why(autojump_clock):
    """Each event leaves a line: time, event, message, verdict and the rule that decided."""
    async with open_router() as router:
        route = router.on(Go).interrupt_on(Stop, condition=lambda m: m.id > 3).stream(second)
        router.publish(Stop())
        router.publish(Go())
        await trio.sleep(0.5)
        router.publish(Stop())
        router.publish(Stop())
        await trio.sleep(1)
        rule = "interrupt_on(Stop, condition=<lambda>)"
        assert [tuple(line) for line in router.runtime(route).decisions] == [
            (0, "wk.stop", 1, "idle", f"{rule}: nothing was running"),
            (0, "wk.go", 2, "matched", "run 1"),
            (0.5, "wk.stop", 3, "gated", f"{rule}: the condition was False"),
            (0.5, "wk.stop", 4, "cut", f"{rule}: run 1"),
        ]


async def test_the_log_is_bounded(autojump_clock):
    """A route keeps its last 128 lines."""
    async with open_router() as router:
        route = router.on(Go).interrupt_on(Stop).stream(second)
        for _ in range(200):
            router.publish(Stop())
        assert len(router.runtime(route).decisions) == 128


async def test_only_routes_that_declare_the_event_are_cut(autojump_clock):
    """An interrupt reaches the runs of the routes that name it, and no others."""
    async with open_router() as router:
        named = router.on(Go).interrupt_on(Stop).stream(forever)
        other = router.on(Go).stream(forever)
        router.publish(Go())
        await trio.sleep(1)
        router.publish(Stop())
        await trio.sleep(1)
        assert router.runtime(named).runs == ()
        assert len(router.runtime(other).runs) == 1


async def test_no_stage_sees_a_value_made_after_the_cut(autojump_clock):
    """A value that a node gives although it was cut goes into no stage, sync or waiting."""
    seen = []

    async def deaf_once(message):
        yield 0
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            yield 1
            raise

    for build in (
        lambda r: r.stream(deaf_once).map(seen.append),
        lambda r: r.map(lambda m: deaf_once(m)).map(seen.append),
        lambda r: r.stream(deaf_once).broadcast().map(later),
    ):
        seen.clear()
        async with open_router() as router:
            route = build(router.on(Go).interrupt_on(Stop))
            router.publish(Go())
            await trio.sleep(1)
            router.publish(Stop())
            await trio.sleep(1)
            assert 1 not in seen
            assert router.runtime(route).runs == ()
