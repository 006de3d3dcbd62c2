"""What leaves the block of a router."""

from typing import Literal

import pytest
import trio
import trio.testing

from bargein.routes import Event, open_router


class Go(Event):
    type: Literal["or.go"] = "or.go"


@pytest.mark.parametrize(
    "error",
    [KeyError("a"), SystemExit(3), KeyboardInterrupt(), ExceptionGroup("mine", [KeyError("a")])],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_what_the_block_raises_arrives_as_it_is(error, is_cancelled):
    """No exception group wraps it, not even in a scope that is cancelled while a run goes on."""

    async def forever(_):
        await trio.sleep_forever()
        yield

    async def leave(scope):
        async with open_router() as router:
            router.on(Go).stream(forever)
            router.publish(Go())
            await trio.testing.wait_all_tasks_blocked()
            if is_cancelled:
                scope.cancel()
            raise error

    with trio.CancelScope() as scope, pytest.raises(type(error)) as caught:
        await leave(scope)
    assert caught.value is error


async def test_what_the_block_and_a_task_raise_arrives_together():
    """Neither error is lost: both come in one exception group."""

    async def fail():
        raise OSError("line")

    with pytest.RaisesGroup(OSError, KeyError):
        async with open_router() as router:
            router.nursery.start_soon(fail)
            raise KeyError("a")


class Stubborn:
    """An awaitable that raises when nobody awaits it."""

    def __await__(self):
        return trio.Event().wait().__await__()

    def close(self):
        raise OSError("not now")


async def test_a_router_that_cannot_close_ends_all_the_same(autojump_clock):
    """What a waiting trigger raises at its end arrives, and no task is left that holds it up."""

    async def leave():
        async with open_router() as router:
            router.on(Go).map(lambda message: Stubborn()).stream(wait).broadcast()
            router.publish(Go())
            await trio.sleep(1)
            router.publish(Go())
            await trio.sleep(1)

    with pytest.raises(OSError, match="not now"):
        await leave()


async def wait(value):
    await trio.sleep_forever()
    yield
