"""What is sent again over another connection, message by message."""

import struct
import tracemalloc

import pytest
import trio
import trio.testing

from bargein.bridge.server._backlog import KEPT_BYTES, Backlog
from bargein.bridge.server._outbox import Outbox
from bargein.protocol import Resume


class Wire:
    """Keeps what is sent; `stuck` takes a message and never gets rid of it."""

    def __init__(self, stuck=False):
        self.got = []
        self.stuck = stuck

    async def send(self, message):
        self.got.append(message)
        if self.stuck:
            await trio.sleep_forever()


def audio(utterance, pcm):
    return struct.pack("<I", utterance) + pcm


def asks(received, utterance=None, audio_bytes=0):
    return Resume(token="t", received=received, utterance=utterance, audio_bytes=audio_bytes)


class Bench:
    """A backlog whose outboxes are run by a nursery."""

    def __init__(self, nursery, carry, **options):
        self.carry = carry
        self.nursery = nursery
        self.overflowed = []
        self.backlog = Backlog(self.between, **options)

    def between(self):
        return Outbox(max_bytes=2000, on_broken=lambda: self.overflowed.append("overflow"))

    async def run(self, wire, begin):
        outbox = Outbox()
        begin(outbox)
        self.nursery.start_soon(self.carry, outbox, wire.send)
        await trio.testing.wait_all_tasks_blocked()
        return wire

    async def first(self, **options):
        return await self.run(Wire(**options), self.backlog.begin)

    async def again(self, asked):
        return await self.run(
            Wire(), lambda outbox: self.backlog.resume(outbox, asked, "the greeting")
        )


async def test_what_was_missed_comes_again_in_the_order_of_the_wire(nursery, carry):
    """JSON from the first that is missing, audio from the very sample, then what waits."""
    bench = Bench(nursery, carry)
    await bench.first()
    put, play = bench.backlog.put, bench.backlog.put_audio
    put("1")
    play(1, b"aabbcc")
    put("2")
    play(1, b"dd")
    play(2, b"ee")
    put("3")
    await trio.testing.wait_all_tasks_blocked()
    bench.backlog.leave()
    put("4")
    play(2, b"ff")
    wire = await bench.again(asks(1, utterance=1, audio_bytes=4))
    assert wire.got == [
        "the greeting",
        audio(1, b"cc"),
        "2",
        audio(1, b"dd"),
        audio(2, b"ee"),
        "3",
        "4",
        audio(2, b"ff"),
    ]


async def test_it_can_drop_again_and_again(nursery, carry):
    """Counts and places hold over any number of connections."""
    bench = Bench(nursery, carry)
    await bench.first()
    for n in range(1, 6):
        bench.backlog.put(str(n))
        bench.backlog.put_audio(1, b"%d%d" % (n, n))
    await trio.testing.wait_all_tasks_blocked()
    for got in range(1, 5):
        bench.backlog.leave()
        asked = asks(got, utterance=1, audio_bytes=2 * got)
        assert bench.backlog.can_resume(asked)
        wire = await bench.again(asked)
        assert [m for m in wire.got if isinstance(m, str)][1:] == list("12345")[got:]
        pcm = b"".join(m[4:] for m in wire.got if isinstance(m, bytes))
        assert pcm == b"1122334455"[2 * got :]


async def test_a_message_that_was_torn_comes_again(nursery, carry):
    """What was handed to a connection that never got rid of it is not lost."""
    bench = Bench(nursery, carry)
    await bench.first(stuck=True)
    bench.backlog.put("1")
    bench.backlog.put("2")
    await trio.testing.wait_all_tasks_blocked()
    bench.backlog.leave()
    wire = await bench.again(asks(0))
    assert wire.got == ["the greeting", "1", "2"]


async def test_the_greeting_is_first_also_before_what_is_urgent(nursery, carry):
    """Urgent messages of the gap come behind it, and in front of the rest."""
    bench = Bench(nursery, carry)
    await bench.first()
    bench.backlog.leave()
    bench.backlog.put("1")
    bench.backlog.put_first("clear")
    wire = await bench.again(asks(0))
    assert wire.got == ["the greeting", "clear", "1"]


async def test_audio_that_was_cut_does_not_come_again(nursery, carry):
    """A fence takes away what waits and what was sent."""
    bench = Bench(nursery, carry)
    await bench.first()
    bench.backlog.put_audio(1, b"aa")
    bench.backlog.put_audio(2, b"bb")
    await trio.testing.wait_all_tasks_blocked()
    bench.backlog.leave()
    bench.backlog.put_audio(1, b"cc")
    assert bench.backlog.drop_audio(1) == 1
    wire = await bench.again(asks(0))
    assert wire.got == ["the greeting", audio(2, b"bb")]


async def test_a_greeting_does_not_count(nursery, carry):
    """The first message of a connection is sent once, and is not sent again."""
    bench = Bench(nursery, carry)
    await bench.first()
    bench.backlog.greet("hello")
    bench.backlog.put("1")
    await trio.testing.wait_all_tasks_blocked()
    bench.backlog.leave()
    assert not bench.backlog.can_resume(asks(2))  # more than was ever sent
    wire = await bench.again(asks(1))
    assert wire.got == ["the greeting"]


async def test_what_is_kept_is_bounded(nursery, carry):
    """Of very much that was sent the last is kept; who has missed more cannot go on."""
    bench = Bench(nursery, carry)
    await bench.first()
    for n in range(8):
        bench.backlog.put(str(n) * (KEPT_BYTES // 6))
        await trio.testing.wait_all_tasks_blocked()
    bench.backlog.leave()
    assert not bench.backlog.can_resume(asks(1))
    assert bench.backlog.can_resume(asks(2))
    wire = await bench.again(asks(2))
    assert [message[0] for message in wire.got[1:]] == list("234567")


async def test_what_waits_in_a_gap_is_bounded(nursery, carry):
    """Too much for the gap is told, and nothing more is taken."""
    bench = Bench(nursery, carry)
    await bench.first()
    bench.backlog.leave()
    for _ in range(3):
        bench.backlog.put("x" * 900)
    assert bench.overflowed == ["overflow"]


async def test_a_microphone_is_not_kept(nursery, carry):
    """Late audio of a caller is worth nothing: only JSON is sent again."""
    bench = Bench(nursery, carry)
    await bench.first()
    bench.backlog.put(b"frame")
    bench.backlog.put("1")
    await trio.testing.wait_all_tasks_blocked()
    bench.backlog.leave()
    wire = await bench.run(Wire(), lambda outbox: bench.backlog.send_again(outbox, 0))
    assert wire.got == ["1"]


async def test_what_is_forgotten_is_gone(nursery, carry):
    """What would end the next connection, too, is not sent again."""
    bench = Bench(nursery, carry)
    await bench.first()
    bench.backlog.put("too big")
    await trio.testing.wait_all_tasks_blocked()
    bench.backlog.leave()
    bench.backlog.forget()
    bench.backlog.put("next")
    wire = await bench.run(Wire(), lambda outbox: bench.backlog.send_again(outbox, 0))
    assert wire.got == ["next"]


async def test_what_the_client_has_is_not_kept(nursery, carry):
    """Messages that it has told of, and audio that it has played, are sent to nobody again."""
    bench = Bench(nursery, carry)
    await bench.first()
    put, play = bench.backlog.put, bench.backlog.put_audio
    for n in range(1, 6):
        put(str(n))
        play(n, bytes(4800))
    await trio.testing.wait_all_tasks_blocked()
    bench.backlog.note_received(3)
    bench.backlog.note_played(4, 50)  # of 100 ms: the piece is not played to its end
    assert not bench.backlog.can_resume(asks(2))
    assert bench.backlog.can_resume(asks(3))
    wire = await bench.again(asks(3))
    assert wire.got == [
        "the greeting", "4", audio(4, bytes(4800)), "5", audio(5, bytes(4800))
    ]  # fmt: skip


async def test_audio_is_kept_without_a_copy(nursery, carry):
    """What is sent is kept for another connection as the very bytes that the playout keeps."""
    bench = Bench(nursery, carry)
    wire = await bench.first()
    pieces = [bytes([n]) * 1920 for n in range(100)]
    tracemalloc.start()
    try:
        for piece in pieces:
            bench.backlog.put_audio(1, piece)
        await trio.testing.wait_all_tasks_blocked()
        wire.got.clear()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < sum(map(len, pieces)) / 5
    bench.backlog.leave()
    again = await bench.again(asks(0))
    assert again.got[1:] == [audio(1, piece) for piece in pieces]


@pytest.mark.parametrize("count", [6, 10**9])
async def test_a_client_cannot_have_more_than_was_sent(nursery, carry, count):
    """Who tells of more messages than there were is not believed."""
    bench = Bench(nursery, carry)
    await bench.first()
    bench.backlog.put("1")
    await trio.testing.wait_all_tasks_blocked()
    bench.backlog.note_received(count)
    assert bench.backlog.can_resume(asks(0))
