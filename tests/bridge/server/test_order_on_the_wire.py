"""The order on the wire, a pure core: what is sent first, what a cut drops, what is sent again.

A whole server sends what it has at once; here lines take nothing, break, and come back.
"""

import struct
import tracemalloc
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from bargein import App, Call, Message
from bargein.bridge.protocol._outbox import Outbox
from bargein.bridge.protocol._reconnect_backlog import KEPT_BYTES, Backlog
from bargein.bridge.wires.native._native_transport import NativeTransport
from bargein.client import Seen
from bargein.events import (
    AgentAudio,
    AgentAudioComplete,
    AgentResponse,
    DTMFInput,
    LogMetric,
    StateChanged,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.protocol import Resume, Watch, decode_server
from bargein.server import Metrics

QUEUE_LIMIT = 1024
LAST_LIMIT = 64


class Line:
    """A transport and what it sends, once `flush` is called."""

    def __init__(self, *, audio=True, watch="events"):
        self.sent = []
        self.metrics = Metrics()
        self.outbox = Outbox()
        self.transport = NativeTransport(self.outbox, self.metrics, audio=audio, watch=watch)

    def flush(self):
        while (data := self.outbox.next()) is not None:
            self.sent.append(decode_server(data))
        return [getattr(m, "type", "audio") for m in self.sent]


async def test_the_end_of_what_is_given_again_carries_its_fresh_number(autojump_clock):
    """The player is told the end of the number by which it has the audio; texts keep theirs."""
    line = Line()

    async def one(message):
        yield AgentResponse(content="one")
        yield AgentAudio(bytes(28_800), 24_000, "one")
        yield AgentAudioComplete(utterance=1)

    async def answer(call):
        call.bridge(name="agent").on(UserStoppedSpeaking).stream(one).broadcast()

    async with App(answer).open_call(line.transport) as call:
        call.publish(UserStoppedSpeaking())
        await trio.sleep(0.1)
        call.answers.resend()
        await trio.sleep(1)
    line.flush()
    told = [(getattr(m, "type", "audio"), getattr(m, "utterance", None)) for m in line.sent]
    assert [number for kind, number in told if kind == "audio"] == [2] * 6  # of 100 ms
    assert [about for about in told if about[0] in ("clear", "utterance.end", "spoken")] == [
        ("clear", 1), ("utterance.end", 2), ("spoken", 1)
    ]  # fmt: skip


async def test_clear_goes_out_before_anything_and_leaves_no_audio_behind():
    """Queued audio at or below the fence is dropped, and late audio of it too."""
    line = Line()
    for utterance in (1, 2, 3):
        line.transport.play(utterance, b"\1\0" * 480)
    line.transport.clear(2, "barge-in")
    line.transport.play(2, b"\2\0")
    line.transport.play(3, b"\3\0")
    assert line.flush() == ["clear", "audio", "audio"]
    assert [m.utterance for m in line.sent[1:]] == [3, 3]
    assert line.metrics.frames_dropped == 3
    assert line.metrics.barge_ins == 1


async def test_a_hold_overtakes_what_waits_but_no_clear():
    """Holds and clears reach the client in their order, before all audio."""
    line = Line()
    line.transport.play(1, b"\1\0" * 480)
    line.transport.play(2, b"\1\0" * 480)
    line.transport.hold(True)
    line.transport.clear(1, "cancel")
    line.transport.hold(False)
    assert line.flush() == ["hold", "clear", "hold", "audio"]
    assert [m.on for m in line.sent if getattr(m, "type", "") == "hold"] == [True, False]


async def test_a_caller_who_reads_is_told_of_no_hold():
    """There is no player to hold where only text travels."""
    line = Line(audio=False)
    line.transport.hold(True)
    assert line.flush() == []


async def test_nothing_follows_ended():
    """Once the end is told, neither events nor audio are."""
    line = Line()
    line.transport.finish("hangup")
    line.transport.finish("other")
    line.transport.send(Message(StateChanged(state="closed", number=1)))
    line.transport.play(1, b"12")
    line.transport.hold(True)
    assert line.flush() == ["ended"]
    assert line.sent[0].reason == "hangup"


# --- a line that takes nothing --------------------------------------------------------------------


@dataclass
class Order:
    """Routed, but no Event."""

    type: ClassVar[str] = "watch.order"
    extras: Any


class Clogged:
    """A connection that takes a message only when it is let to."""

    def __init__(self) -> None:
        self.sent: list[str | bytes] = []
        self.may_send = trio.Event()

    async def send(self, data: str | bytes) -> None:
        await self.may_send.wait()
        self.sent.append(data)


@pytest.fixture
async def watched(autojump_clock, carry):
    """A call over a connection that takes nothing yet, with its transport and a watcher."""
    line = Clogged()
    outbox = Outbox()
    transport = NativeTransport(outbox, Metrics(), audio=False, watch="words")

    async def answer(call: Call) -> None:
        """Says nothing."""

    async with trio.open_nursery() as nursery, App(answer).open_call(transport) as call:
        nursery.start_soon(carry, outbox, line.send)
        await trio.testing.wait_all_tasks_blocked()
        transport.receive(Watch(on=True), call)
        yield call, transport, outbox, line
        line.may_send.set()
        outbox.close()


async def test_a_slow_client_loses_the_oldest(watched):
    """What a client does not take waits up to a bound; then the oldest is lost, and counted."""
    call, _, outbox, line = watched
    for n in range(QUEUE_LIMIT + 50):
        call.publish(LogMetric(name="n", value=n))
    assert (
        outbox.statistics().waiting < QUEUE_LIMIT + 60
    )  # the events' own messages; none for `seen`
    line.may_send.set()
    await trio.testing.wait_all_tasks_blocked()
    told = [d for d in line.sent if isinstance(d, str) and '"seen"' in d]
    first = Seen.model_validate_json(told[0])
    assert len(told) == QUEUE_LIMIT
    assert first.lost == 50
    assert first.data["value"] == 50
    assert all(Seen.model_validate_json(one).lost is None for one in told[1:])


async def test_a_slow_client_is_told_what_came_before_a_cut(watched):
    """It is a record: what was said before the cut is told before it, and nothing after it is."""
    call, _, _, line = watched

    async def tell(message):
        for n in range(3):
            yield AgentResponse(content=f"Chapter {n}. ")
        await trio.sleep_forever()

    chain = call.bridge(name="teller").on(UserStoppedSpeaking)
    chain.interrupt_on(UserStartedSpeaking).stream(tell).broadcast()
    call.publish(UserStoppedSpeaking())
    await trio.testing.wait_all_tasks_blocked()
    call.publish(UserStartedSpeaking())
    line.may_send.set()
    await trio.testing.wait_all_tasks_blocked()
    told = [Seen.model_validate_json(d) for d in line.sent if isinstance(d, str) and '"seen"' in d]
    told = [one for one in told if one.name in ("agent.response", "route.cut")]
    assert [one.name for one in told] == [*3 * ["agent.response"], "route.cut"]
    assert told == sorted(told, key=lambda one: one.at_s)


async def test_what_is_seen_waits_for_everything_else(watched):
    """A message of the call that comes later goes before all that is only seen."""
    call, _, _, line = watched
    for n in range(20):
        call.publish(DTMFInput(button="1"), source=f"s{n}")
    call.publish(UserTranscriptionReceived(content="now"))
    line.may_send.set()
    await trio.testing.wait_all_tasks_blocked()
    kinds = ["seen" if '"seen"' in d else "other" for d in line.sent if isinstance(d, str)]
    assert kinds == sorted(kinds)  # "other" < "seen"


async def test_the_end_takes_only_the_newest_with_it(watched):
    """When the call is over, a client that has not kept up gets the newest events and the end."""
    call, transport, _, line = watched
    for n in range(500):
        call.publish(LogMetric(name="n", value=n))
    transport.finish("ended")
    line.may_send.set()
    await trio.testing.wait_all_tasks_blocked()
    told = [Seen.model_validate_json(d) for d in line.sent if '"seen"' in d]
    assert len(told) == LAST_LIMIT
    assert [one.data["value"] for one in told] == list(range(500 - LAST_LIMIT, 500))
    assert told[0].lost == 500 - LAST_LIMIT
    assert '"ended"' in line.sent[-1]


async def test_an_event_that_breaks_is_told_without_its_fields(watched):
    """An event of a user's class that cannot be read is seen by its name, and harms nobody."""
    call, _, _, line = watched

    class Mean(dict):
        """Raises when it is looked into."""

        def items(self):
            raise OSError("no")

    call.publish(Order(extras=Mean()))
    line.may_send.set()
    with capture_logs() as logs:
        await trio.testing.wait_all_tasks_blocked()
    [told] = [Seen.model_validate_json(d) for d in line.sent if '"watch.order"' in d]
    assert (told.data, told.hidden) == ({}, ("all",))
    assert [entry["event"] for entry in logs] == ["event_not_shown"]


# --- a line that breaks and comes back ------------------------------------------------------------


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
        return await self.run(Wire(**options), self.backlog.attach)

    async def again(self, asked):
        return await self.run(
            Wire(), lambda outbox: self.backlog.resume(outbox, asked, "the greeting")
        )


async def test_what_was_missed_comes_again_in_the_order_of_the_wire(nursery, carry):
    """JSON from the first that is missing, audio from the very sample, then what waits."""
    bench = Bench(nursery, carry)
    await bench.first()
    backlog = bench.backlog
    backlog.enqueue("1")
    backlog.enqueue_audio(1, b"aabbcc")
    backlog.enqueue("2")
    backlog.enqueue_audio(1, b"dd")
    backlog.enqueue_audio(2, b"ee")
    backlog.enqueue("3")
    await trio.testing.wait_all_tasks_blocked()
    backlog.leave()
    backlog.enqueue("4")
    backlog.enqueue_audio(2, b"ff")
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
        bench.backlog.enqueue(str(n))
        bench.backlog.enqueue_audio(1, b"%d%d" % (n, n))
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
    bench.backlog.enqueue("1")
    bench.backlog.enqueue("2")
    await trio.testing.wait_all_tasks_blocked()
    bench.backlog.leave()
    wire = await bench.again(asks(0))
    assert wire.got == ["the greeting", "1", "2"]


async def test_the_greeting_is_first_also_before_what_is_urgent(nursery, carry):
    """Urgent messages of the gap come behind it, and in front of the rest."""
    bench = Bench(nursery, carry)
    await bench.first()
    bench.backlog.leave()
    bench.backlog.enqueue("1")
    bench.backlog.enqueue_first("clear")
    wire = await bench.again(asks(0))
    assert wire.got == ["the greeting", "clear", "1"]


async def test_audio_that_was_cut_does_not_come_again(nursery, carry):
    """A fence takes away what waits and what was sent."""
    bench = Bench(nursery, carry)
    await bench.first()
    bench.backlog.enqueue_audio(1, b"aa")
    bench.backlog.enqueue_audio(2, b"bb")
    await trio.testing.wait_all_tasks_blocked()
    bench.backlog.leave()
    bench.backlog.enqueue_audio(1, b"cc")
    assert bench.backlog.drop_audio(1) == 1
    wire = await bench.again(asks(0))
    assert wire.got == ["the greeting", audio(2, b"bb")]


async def test_a_greeting_does_not_count(nursery, carry):
    """The first message of a connection is sent once, and is not sent again."""
    bench = Bench(nursery, carry)
    await bench.first()
    bench.backlog.greet("hello")
    bench.backlog.enqueue("1")
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
        bench.backlog.enqueue(str(n) * (KEPT_BYTES // 6))
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
        bench.backlog.enqueue("x" * 900)
    assert bench.overflowed == ["overflow"]


async def test_a_microphone_is_not_kept(nursery, carry):
    """Late audio of a caller is worth nothing: only JSON is sent again."""
    bench = Bench(nursery, carry)
    await bench.first()
    bench.backlog.enqueue(b"frame")
    bench.backlog.enqueue("1")
    await trio.testing.wait_all_tasks_blocked()
    bench.backlog.leave()
    wire = await bench.run(Wire(), lambda outbox: bench.backlog.send_again(outbox, 0))
    assert wire.got == ["1"]


async def test_what_is_forgotten_is_gone(nursery, carry):
    """What would end the next connection, too, is not sent again."""
    bench = Bench(nursery, carry)
    await bench.first()
    bench.backlog.enqueue("too big")
    await trio.testing.wait_all_tasks_blocked()
    bench.backlog.leave()
    bench.backlog.forget()
    bench.backlog.enqueue("next")
    wire = await bench.run(Wire(), lambda outbox: bench.backlog.send_again(outbox, 0))
    assert wire.got == ["next"]


async def test_what_the_client_has_is_not_kept(nursery, carry):
    """Messages that it has told of, and audio that it has played, are sent to nobody again."""
    bench = Bench(nursery, carry)
    await bench.first()
    put, play = bench.backlog.enqueue, bench.backlog.enqueue_audio
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
            bench.backlog.enqueue_audio(1, piece)
        await trio.testing.wait_all_tasks_blocked()
        wire.got.clear()
        # Only what the server allocates: other threads of the process may be at work meanwhile.
        ours = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/bridge/*")])
    finally:
        tracemalloc.stop()
    taken = sum(kept.size for kept in ours.statistics("filename"))
    assert taken < sum(map(len, pieces)) / 5
    bench.backlog.leave()
    again = await bench.again(asks(0))
    assert again.got[1:] == [audio(1, piece) for piece in pieces]


@pytest.mark.parametrize("count", [6, 10**9])
async def test_a_client_cannot_have_more_than_was_sent(nursery, carry, count):
    """Who tells of more messages than there were is not believed."""
    bench = Bench(nursery, carry)
    await bench.first()
    bench.backlog.enqueue("1")
    await trio.testing.wait_all_tasks_blocked()
    bench.backlog.note_received(count)
    assert bench.backlog.can_resume(asks(0))
