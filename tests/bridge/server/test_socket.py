"""The outbox, and connections whose sends are cancelled."""

import functools

import pytest
import trio
import trio.testing
from websockets.exceptions import ConnectionClosed
from websockets.protocol import CLOSED
from websockets.trio.client import connect
from websockets.trio.server import serve

from bridge.server._socket import Outbox, SafeClient, SafeServer


class SlowLine:
    """Takes one message each `each_s` seconds."""

    def __init__(self, each_s: float = 0.0) -> None:
        self.each_s = each_s
        self.got: list[str | bytes] = []

    async def send(self, message: str | bytes) -> None:
        await trio.sleep(self.each_s)
        self.got.append(message)


async def test_messages_leave_in_order(autojump_clock, nursery):
    """What is queued is sent, in the order of queueing."""
    line = SlowLine()
    outbox = Outbox(line)
    nursery.start_soon(outbox.run)
    for n in range(5):
        outbox.put(str(n))
    await trio.testing.wait_all_tasks_blocked()
    outbox.put("5")
    outbox.close()
    await outbox.finished.wait()
    assert line.got == list("012345")
    assert outbox.sent == 6


async def test_a_clear_overtakes_and_drops_the_audio_it_fences(autojump_clock, nursery):
    """Audio at or below the fence is gone; clear goes next; all else keeps its order."""
    line = SlowLine(each_s=1)
    outbox = Outbox(line)
    nursery.start_soon(outbox.run)
    for utterance in (1, 1, 2, 3):
        outbox.put(b"%d" % utterance, utterance=utterance)
        outbox.put(f"after {utterance}")
    await trio.sleep(0.5)  # the first frame is on its way
    assert outbox.drop_audio(2) == 2
    outbox.put_first("clear 1")
    outbox.put_first("clear 2")
    outbox.close()
    await outbox.finished.wait()
    assert line.got == [
        *(b"1", "clear 1", "clear 2", "after 1", "after 1", "after 2", b"3", "after 3")
    ]
    assert outbox.dropped == 2


async def test_too_much_for_a_slow_peer_breaks_the_outbox(autojump_clock, nursery):
    """Beyond its bound the outbox drops all, says so once, and takes nothing more."""
    broken = []
    outbox = Outbox(SlowLine(each_s=100), max_bytes=10, on_broken=broken.append)
    nursery.start_soon(outbox.run)
    outbox.put("x" * 10)
    outbox.put("y")
    outbox.put("z")
    assert broken == ["overflow"]
    assert outbox.dropped == 3
    assert outbox.waiting == 0
    await outbox.finished.wait()


async def test_bytes_that_left_or_were_dropped_make_room(autojump_clock, nursery):
    """The bound counts what waits now, not what ever waited."""
    broken = []
    outbox = Outbox(SlowLine(), max_bytes=10, on_broken=broken.append)
    nursery.start_soon(outbox.run)
    for n in range(10):
        outbox.put(b"x" * 10, utterance=n)
        if n % 2:
            outbox.drop_audio(n)
        else:
            await trio.testing.wait_all_tasks_blocked()
    assert not broken


async def test_a_peer_that_takes_nothing_breaks_the_outbox(autojump_clock):
    """After the stall limit the send is given up."""
    broken = []
    outbox = Outbox(SlowLine(each_s=1000), stall_s=10, on_broken=broken.append)
    outbox.put("x")
    await outbox.run()
    assert broken == ["stalled"]
    assert trio.current_time() == 10
    assert outbox.finished.is_set()


class SlowStream(trio.abc.Stream):
    """Sends the first half of anything long at once and the rest after 10 s."""

    def __init__(self, inner: trio.abc.Stream) -> None:
        self.inner = inner

    async def send_all(self, data: bytes) -> None:
        if len(data) > 1000:
            half = len(data) // 2
            await self.inner.send_all(data[:half])
            await trio.sleep(10)
            data = data[half:]
        await self.inner.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self.inner.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        return await self.inner.receive_some(max_bytes)

    async def aclose(self) -> None:
        await self.inner.aclose()


async def _over_memory(nursery, handler, **options):
    client_end, server_end = map(SlowStream, trio.testing.memory_stream_pair())

    class OneConnection(trio.abc.Listener):
        socket = type("S", (), {"family": 1, "getsockname": lambda self: "memory"})()
        taken = False

        async def accept(self):
            if self.taken:
                await trio.sleep_forever()
            self.taken = True
            return server_end

        async def aclose(self):
            await trio.lowlevel.checkpoint()

    await nursery.start(
        functools.partial(
            serve,
            handler,
            listeners=[OneConnection()],
            compression=None,
            create_connection=SafeServer,
            ping_interval=None,
        )
    )
    return connect(
        "ws://memory/",
        stream=client_end,
        compression=None,
        proxy=None,
        create_connection=SafeClient,
        max_size=None,
        ping_interval=None,
        **options,
    )


@pytest.mark.parametrize("who", ["server", "client"])
async def test_a_cancelled_send_closes_the_connection(autojump_clock, nursery, who):
    """After a send that was cancelled half-way nothing more is written, at either end."""
    outcome = []

    async def torn(connection):
        with trio.move_on_after(1):
            await connection.send(b"A" * 300_000)
        with trio.move_on_after(60):
            try:
                await connection.send("later")
            except ConnectionClosed:
                outcome.append("closed")
            outcome.append(connection.state)

    async def deaf(connection):
        await trio.sleep(5)
        got = []
        try:
            async for message in connection:
                got.append(message)
        except ConnectionClosed:
            pass
        outcome.append(got)

    here, there = (deaf, torn) if who == "server" else (torn, deaf)
    async with await _over_memory(nursery, there) as connection:
        await here(connection)
    await trio.sleep(30)
    assert sorted(outcome, key=str) == sorted(["closed", CLOSED, []], key=str)
    nursery.cancel_scope.cancel()


async def test_a_hard_cancel_wakes_who_waits_for_the_connection(autojump_clock, nursery):
    """After the cancellation of a handler a shielded recv returns instead of hanging."""
    woken = []

    async def handler(connection):
        with trio.CancelScope() as scope:
            connection.nursery.cancel_scope.cancel()
            try:
                await trio.sleep_forever()
            finally:
                with trio.move_on_after(60, shield=True) as patience:
                    with pytest.raises(ConnectionClosed):
                        await connection.recv()
                    woken.append("recv")
                assert not patience.cancelled_caught
        assert scope

    async with await _over_memory(nursery, handler) as connection:
        with pytest.raises(ConnectionClosed):
            await connection.recv()
    await trio.testing.wait_all_tasks_blocked()
    assert woken == ["recv"]
    nursery.cancel_scope.cancel()
