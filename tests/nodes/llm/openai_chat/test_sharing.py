"""Blocks that use a model at the same time share its connections."""

from __future__ import annotations

import trio

from .asking import ASK, chat, collect


async def ask(model) -> None:
    """Ask, and take the whole answer."""
    await collect(model.stream(ASK))


async def test_the_last_block_to_leave_closes_it(server) -> None:
    """Overlapping blocks have one connection, which goes with the last; the next has its own."""
    server.script = lambda x: x.answer("ok")
    model = chat(server)
    async with model.open():
        await ask(model)
        async with model.open():
            await ask(model)
        await ask(model)
        assert (server.connections, server.open_connections) == (1, 1)
    await nobody_is_connected(server)
    async with model.open():
        await ask(model)
    assert server.connections == 2
    await nobody_is_connected(server)


async def test_a_block_that_is_cancelled_closes_it_too(server) -> None:
    """However the last block is left."""
    server.script = lambda x: x.answer("ok")
    model = chat(server)
    with trio.CancelScope() as scope:
        async with model.open():
            await ask(model)
            scope.cancel()
            await trio.sleep_forever()
    await nobody_is_connected(server)


async def test_without_a_block_it_lasts_as_long_as_the_run(server) -> None:
    """A use without a block keeps the resource open, even after the block of another use."""
    server.script = lambda x: x.answer("ok")
    model = chat(server)
    await ask(model)
    async with model.open():
        await ask(model)
    await ask(model)
    assert (server.connections, server.open_connections) == (1, 1)


async def nobody_is_connected(server) -> None:
    with trio.fail_after(10):
        while server.open_connections:  # noqa: ASYNC110 - a socket's end is no event of ours
            await trio.sleep(0.001)
