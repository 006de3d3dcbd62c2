"""The cancellation token."""

import threading

import pytest
import trio

from bargein import Interrupted, InterruptToken


def test_a_fresh_token_is_quiet():
    """Nothing was asked of a fresh token."""
    token = InterruptToken()
    token.throw_if_requested()
    assert not token.is_requested
    assert not token.is_forced
    assert not token.is_background_requested
    assert repr(token) == "<InterruptToken quiet>"


def test_a_request_is_seen_and_called_once():
    """Asking twice is asking once; polling code gets Interrupted."""
    calls = []
    token = InterruptToken(lambda: calls.append(1))
    token.request()
    token.request()
    assert calls == [1]
    assert token.is_requested
    assert repr(token) == "<InterruptToken requested>"
    with pytest.raises(Interrupted):
        token.throw_if_requested()


def test_force_asks_too():
    """Force is a request without grace, for children as well, also after a request."""
    token = InterruptToken()
    child = token.child()
    token.request()
    assert not token.is_forced
    token.force()
    assert token.is_forced
    assert child.is_forced
    assert child.is_requested


@pytest.mark.parametrize("order", ["background first", "cancel first"])
def test_cancel_wins_over_background(order):
    """Whatever comes first, a request to stop wins over one to go on in the background."""
    token = InterruptToken()
    token.request_background()
    assert token.is_background_requested
    token = InterruptToken()
    steps = [token.request_background, token.request]
    for step in steps if order == "background first" else reversed(steps):
        step()
    assert token.is_requested
    assert not token.is_background_requested


def test_a_parent_asks_its_children_and_not_the_reverse():
    """Requests go down, never up."""
    parent = InterruptToken()
    child, other = parent.child(), parent.child()
    child.request()
    child.request_background()
    assert not parent.is_requested
    assert not other.is_requested
    parent.request_background()
    assert other.is_background_requested
    parent.request()
    assert other.is_requested


@pytest.mark.parametrize("what", ["request", "force", "request_background"])
def test_a_late_child_is_born_asked(what):
    """A child of a token that was asked is asked from the start, in the same way."""
    parent = InterruptToken()
    getattr(parent, what)()
    child = parent.child()
    assert child.is_requested == parent.is_requested
    assert child.is_forced == parent.is_forced
    assert child.is_background_requested == parent.is_background_requested


async def test_waiting_for_a_request(autojump_clock):
    """`cancelled()` returns in the step after the request, and at once after that."""
    token = InterruptToken()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(token.cancelled)
        await trio.sleep(3)
        token.request()
    assert trio.current_time() == 3
    await token.cancelled()


async def test_a_cancelled_wait_leaves_nothing(autojump_clock):
    """Cancelling the wait is safe, and a later request works."""
    token = InterruptToken()
    with trio.move_on_after(1) as scope:
        await token.cancelled()
    assert scope.cancelled_caught
    token.request()
    assert token.is_requested


async def test_a_thread_can_ask():
    """A request from a thread wakes who waits in trio."""
    token = InterruptToken()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(token.cancelled)
        await trio.testing.wait_all_tasks_blocked()
        await trio.to_thread.run_sync(token.request)
    assert token.is_requested


def test_asking_after_the_loop_ended_is_harmless():
    """A waiter whose event loop ends in the middle of a request does not hinder it."""
    asked, over = threading.Event(), threading.Event()

    def ask_until_it_is_over():
        asked.set()
        assert over.wait(timeout=30)

    token = InterruptToken(on_request=ask_until_it_is_over)

    async def wait():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(token.cancelled)
            await trio.testing.wait_all_tasks_blocked()
            asking.start()
            assert await trio.to_thread.run_sync(asked.wait, 30)
            nursery.cancel_scope.cancel()

    asking = threading.Thread(target=token.request)
    trio.run(wait)
    over.set()
    asking.join(timeout=30)
    assert token.is_requested


def test_threads_may_make_children_while_others_ask():
    """Children made while another thread asks are all asked, in the same way."""
    for _ in range(50):
        parent = InterruptToken()
        children = []
        begin = threading.Barrier(3)

        def make(parent=parent, children=children, begin=begin):
            begin.wait()
            children.extend(parent.child() for _ in range(50))

        makers = [threading.Thread(target=make) for _ in range(2)]
        for maker in makers:
            maker.start()
        begin.wait()
        parent.request_background()
        parent.force()
        for maker in makers:
            maker.join()
        assert all(child.is_requested and child.is_forced for child in children)
