"""What arrives from a block with tasks that serve it, whoever raises."""

from __future__ import annotations

import pytest
import trio

from bargein.routes.service_nursery import open_service_nursery


async def serve(ended: list[str]) -> None:
    try:
        await trio.sleep_forever()
    except trio.Cancelled as cancelled:
        ended.append(str(cancelled))
        raise


async def fail_at_its_end() -> None:
    try:
        await trio.sleep_forever()
    finally:
        raise OSError("of the task")


async def leave(task, error: Exception | None = None, outside: trio.CancelScope | None = None):
    """Leave a block that a task serves, perhaps with an error, and cancelled from outside."""
    async with open_service_nursery("over") as nursery:
        nursery.start_soon(task)
        await trio.sleep(1)
        if outside is not None:
            outside.cancel()
        if error is not None:
            raise error


async def test_the_tasks_end_with_the_block_and_know_why(autojump_clock):
    """Nobody has to cancel them, and what they are told names the reason."""
    ended: list[str] = []
    async with open_service_nursery("the shop is closed") as nursery:
        nursery.start_soon(serve, ended)
        await trio.sleep(1)
    assert len(ended) == 1
    assert "the shop is closed" in ended[0]
    assert trio.current_time() == 1


async def test_what_the_block_raises_arrives_as_it_is(autojump_clock):
    """The caller of a block with tasks need not know that there are any."""
    with pytest.raises(ValueError, match="of the block"):
        await leave(trio.sleep_forever, ValueError("of the block"))


async def test_what_a_task_raises_arrives_in_a_group(autojump_clock):
    """Even a single error does, and even at the end of its block."""
    with pytest.raises(ExceptionGroup) as raised:
        await leave(fail_at_its_end)
    assert [str(error) for error in raised.value.exceptions] == ["of the task"]


async def test_of_two_errors_none_is_lost(autojump_clock):
    """If the block and a task raise, both arrive, the block's first."""
    with pytest.raises(ExceptionGroup) as raised:
        await leave(fail_at_its_end, ValueError("of the block"))
    assert [str(error) for error in raised.value.exceptions] == ["of the block", "of the task"]


async def test_an_error_arrives_although_everything_is_cancelled(autojump_clock):
    """That tasks were cancelled from outside is no error, and hides none."""
    with pytest.raises(ValueError, match="of the block"), trio.CancelScope() as outside:
        await leave(trio.sleep_forever, ValueError("of the block"), outside)


async def test_a_cancellation_goes_to_the_scope_that_is_cancelled(autojump_clock):
    """A deadline around the block ends it and its tasks, and is caught where it was set."""
    ended: list[str] = []
    with trio.move_on_after(2) as outside:
        async with open_service_nursery("over") as nursery:
            nursery.start_soon(serve, ended)
            await trio.sleep_forever()
    assert outside.cancelled_caught
    assert len(ended) == 1
    assert trio.current_time() == 2
