"""Speech that is said again goes on with the first word not heard; what is kept is bounded."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any

import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from bargein.bridge.audio.loudspeaker import Loudspeaker, LoudspeakerReport
from bargein.bridge.playout._audio_buffers import SPARE_PIECES, ResendBuffer
from bargein.bridge.playout._playout import CHUNK_S, LEAD_S, Playout
from bargein.bridge.playout._resend import LONGEST_WORD_S
from bargein.bridge.playout._utterance import Utterance
from bargein.events import AgentAudio, WordTiming

from .conftest import Timers, add

RATE = 1000
SLACK_MS = 21
"""By how much a word may be counted early: one frame, and rounding."""


class Phone:
    """A player that plays and clears, on the clock; the transport and the listener in one.

    Args:
        delay_s: How long its reports take, clears excepted; None for one that tells nothing.
    """

    audio = True
    sample_rate_hz = RATE

    def __init__(self, delay_s: float | None) -> None:
        self.delay_s = delay_s
        self.speaker = Loudspeaker(RATE, buffer_s=0)
        self.told: list[tuple[float, str]] = []
        self.fence = 0
        self.most_ahead = 0
        self.given: list[int] = []
        self.finished: list[int] = []
        self.queued: list[int] = []
        self.news = trio.Event()
        self.reports: list[tuple[float, LoudspeakerReport]] = []
        self.samples: list[int] = []
        self.restarts: list[tuple[int, float]] = []

    def play(self, number: int, pcm: bytes) -> None:
        assert number > self.fence, "audio behind the fence"
        assert number >= (self.given[-1] if self.given else 0), "audio of an older utterance"
        now_s = trio.current_time()
        self.given.append(number)
        self.speaker.feed(number, pcm, now_s)
        self.news.set()

    def clear(self, fence: int, reason: str) -> None:
        now_s = trio.current_time()
        self.fence = fence
        self._tell(self.speaker.clear(fence, now_s))
        self.news.set()

    def _tell(self, report: LoudspeakerReport) -> None:
        if self.delay_s is not None:
            self.reports.append((trio.current_time() + self.delay_s, report))

    async def run(self, playout: Playout) -> None:
        """Tell the playout what is played, each report after its delay."""
        while True:
            now_s = trio.current_time()
            for report in self.speaker.reports(now_s):
                if report.kind != "done":
                    self._tell(report)
            while self.reports and self.reports[0][0] <= now_s:
                _, report = self.reports.pop(0)
                playout.report(report.utterance, report.kind, report.played_ms)
            next_s = min([at_s for at_s, _ in self.reports], default=now_s + 60)
            self.news = trio.Event()
            with trio.move_on_at(min(next_s, self.speaker.next_report_s(now_s))):
                await self.news.wait()

    def furthest_ms(self) -> int:
        """Return how much of the audio was heard at least once."""
        spans = self.speaker.heard(trio.current_time())
        return max((struct.unpack("<H", span.pcm[-2:])[0] + 1 for span in spans), default=0)

    def last_ms(self) -> int:
        """Return where in the audio it is now, or has stopped."""
        spans = self.speaker.heard(trio.current_time())
        return struct.unpack("<H", spans[-1].pcm[-2:])[0] + 1 if spans else 0

    def note_samples(self) -> None:
        """Keep the numbers of the samples that were heard, in order."""
        heard = self.speaker.heard(trio.current_time())
        self.samples = [n for span in heard for (n,) in struct.iter_unpack("<H", span.pcm)]

    def utterance_started(self, utterance: Utterance) -> None:
        """It has begun."""

    def words_heard(self, utterance: Utterance, text: str) -> None:
        self.told.append((self.furthest_ms(), text))

    def utterance_queued(self, utterance: Utterance) -> None:
        self.queued.append(utterance.play_number)

    def voice_failed(self, utterance: Utterance) -> None:
        raise AssertionError("the voice has given everything")

    def utterance_finished(self, utterance: Utterance) -> None:
        self.finished.append(utterance.number)

    def utterance_settled(self, utterance: Utterance) -> None:
        """What was heard is final."""


class Script:
    """A text whose words have lengths, and its audio: one numbered sample a millisecond.

    Its words are timed by the engine; or they are characters, each with its own piece of audio.
    """

    def __init__(self, lengths_ms: list[int], *, timed: bool) -> None:
        self.words = [f"w{n}" if timed else "一二三四五六七八九"[n] for n in range(len(lengths_ms))]
        self.text = (" " if timed else "").join(self.words)
        self.ends = [sum(lengths_ms[: n + 1]) for n in range(len(lengths_ms))]
        self.starts = [end - ms for end, ms in zip(self.ends, lengths_ms, strict=True)]
        self.timed = timed

    def audio(self) -> list[AgentAudio]:
        """Return its audio: in one piece with timings, or piece by piece."""
        numbers = range(self.ends[-1])
        if self.timed:
            words = tuple(
                WordTiming(word, start / 1000, end / 1000)
                for word, start, end in zip(self.words, self.starts, self.ends, strict=True)
            )
            return [AgentAudio(packed(numbers), RATE, self.text, words)]
        return [
            AgentAudio(packed(numbers[start:end]), RATE, word)
            for word, start, end in zip(self.words, self.starts, self.ends, strict=True)
        ]

    def first_missing(self, played_ms: float) -> float:
        """Return where the first word begins that was not played to its end, if it has begun."""
        missing = [n for n, end in enumerate(self.ends) if end > played_ms + SLACK_MS]
        return min(self.starts[missing[0]], played_ms) if missing else played_ms


def packed(numbers: range) -> bytes:
    return struct.pack(f"<{len(numbers)}H", *numbers)


def put(playout: Playout, number: int, script: Script) -> Utterance:
    """Give the playout an utterance, whole."""
    utterance = Utterance(number, None, interruptible=True)  # type: ignore[arg-type]  # no answer
    utterance.generated = script.text
    playout.add(utterance)
    for audio in script.audio():
        playout.add_audio(utterance, audio, trio.current_time())
    utterance.audio_complete = True
    playout.text_complete(utterance)
    return utterance


def jumps(samples: list[int]) -> list[tuple[int, int]]:
    """Return where the sound did not go on with the next sample: from behind which, to which."""
    return [(before + 1, after) for before, after in pairwise(samples) if after != before + 1]


def playout_of(phone: Phone, nursery: trio.Nursery) -> Playout:
    timers = Timers(nursery)
    return Playout(phone, phone, timers.set)  # type: ignore[arg-type]  # it sends no events


async def talk(script: Script, acts: list[Any], delay_s: float | None) -> tuple[Phone, Utterance]:
    """Let a text be said while it is held, released and sent again, and then to its end."""
    phone = Phone(delay_s)
    async with trio.open_nursery() as nursery:
        playout = playout_of(phone, nursery)
        if delay_s is not None:
            nursery.start_soon(phone.run, playout)
        utterance = put(playout, 1, script)
        for wait_ms, act in (*acts, (0, "release")):
            await trio.sleep(wait_ms / 1000)
            number, at_ms = utterance.play_number, phone.last_ms()
            getattr(playout, act)()
            if utterance.play_number > number:
                phone.restarts.append((at_ms, utterance.place_of(utterance.play_number, 0)))
            assert utterance.generated.startswith(utterance.heard)
            spare_s = SPARE_PIECES * CHUNK_S
            assert (
                utterance.resend_buffer.size <= 2 * RATE * (LEAD_S + LONGEST_WORD_S + spare_s) + 100
            )
        await trio.sleep(15)
        phone.note_samples()
        nursery.cancel_scope.cancel()
    return phone, utterance


acts_ = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 17, 40, 90, 150, 200, 333, 400, 700, 1500]),
        st.sampled_from(["hold", "release", "hold", "release", "resend"]),
    ),
    max_size=14,
)
lengths_ = st.lists(st.sampled_from([5, 60, 200, 330, 450, 900]), min_size=1, max_size=9)
often = settings(max_examples=40, database=None, derandomize=True)


def run(script: Script, acts: list[Any], delay_s: float | None) -> tuple[Phone, Utterance]:
    return trio.run(talk, script, acts, delay_s, clock=trio.testing.MockClock(autojump_threshold=0))


def check_all_was_heard(phone: Phone, utterance: Utterance, script: Script) -> None:
    """Every sample was played, every word was told once, and none before it was played."""
    samples = phone.samples
    assert sorted(set(samples)) == list(range(script.ends[-1]))
    assert samples[0] == 0
    assert "".join(text for _, text in phone.told) == script.text
    assert phone.finished == [1]
    assert phone.queued[-1] >= phone.given[-1]
    heard = 0
    for played_ms, text in phone.told:
        heard += len(text.split()) if script.timed else len(text)
        assert script.ends[heard - 1] <= played_ms + SLACK_MS, text
    assert utterance.settled
    assert not utterance.is_cut


@often
@given(lengths_, acts_, st.booleans())
def test_it_goes_on_with_the_first_word_not_heard(lengths, acts, timed):
    """On the clock alone each release begins the unheard word anew, and nothing else twice."""
    script = Script(lengths, timed=timed)
    phone, utterance = run(script, acts, None)
    check_all_was_heard(phone, utterance, script)
    for stopped, begins in phone.restarts:
        wanted = [script.first_missing(stopped - late) for late in range(SLACK_MS + 1)]
        assert any(abs(begins - each) <= 1 for each in wanted) or (
            script.ends[-1] <= stopped + SLACK_MS  # there was nothing left to be heard
        )
    assert len(jumps(phone.samples)) <= len(phone.restarts)


@often
@given(lengths_, acts_, st.booleans(), st.sampled_from([0.0, 0.03, 0.12]))
def test_with_late_reports_no_word_is_lost(lengths, acts, timed, delay_s):
    """A player whose reports take their time: it never skips a word, nor counts one twice."""
    script = Script(lengths, timed=timed)
    phone, utterance = run(script, acts, delay_s)
    check_all_was_heard(phone, utterance, script)
    assert all(after <= before for before, after in jumps(phone.samples))


def test_what_is_sent_under_a_fresh_number_is_understood_by_both():
    """The flush report of the old number is late and still counts; that of the new one, too."""

    async def main() -> None:
        script = Script([300, 300, 300, 300], timed=True)
        phone = Phone(None)
        async with trio.open_nursery() as nursery:
            playout = playout_of(phone, nursery)
            utterance = put(playout, 1, script)
            for _ in range(10):
                await trio.sleep(0.05)
                playout.report(1, "position", (trio.current_time()) * 1000 - 40)
            playout.hold()
            playout.release()  # before it was told where that has stopped it
            assert (utterance.number, utterance.play_number) == (1, 2)
            assert utterance.heard == "w0"
            await trio.sleep(0.02)
            playout.report(1, "flushed", 610)
            assert utterance.heard == "w0 w1"
            playout.report(2, "position", 20)
            assert utterance.played.position_ms(trio.current_time()) == 320  # "w1" begins at 300
            playout.report(7, "position", 1000)
            assert utterance.heard == "w0 w1"
            playout.cut(utterance, "barge-in")
            playout.report(2, "flushed", 50)
            assert utterance.settled
            assert (utterance.heard, utterance.played.cut_at_ms) == ("w0 w1", 610)
            nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


# --- what goes first ------------------------------------------------------------------------------

BEHIND, NOTICE = range(20_000, 20_200), range(50_000, 50_250)
"""The samples of what waits behind the text, and of each notice."""


def put_sound(playout: Playout, numbers: range, *, first: bool = False) -> Utterance:
    """Give the playout an utterance without words, whole."""
    utterance = Utterance(playout.new_number(), None, interruptible=True)  # type: ignore[arg-type]  # no answer
    playout.add(utterance, first=first)
    playout.add_audio(utterance, AgentAudio(packed(numbers), RATE), trio.current_time())
    utterance.audio_complete = True
    playout.text_complete(utterance)
    return utterance


async def interject(script: Script, acts: list[Any], delay_s: float | None) -> Phone:
    """Let notices go in front of a text, and of a sound behind it, and be cut now and then."""
    phone, notices = Phone(delay_s), []
    async with trio.open_nursery() as nursery:
        playout = playout_of(phone, nursery)
        if delay_s is not None:
            nursery.start_soon(phone.run, playout)
        put(playout, playout.new_number(), script)
        put_sound(playout, BEHIND)
        for wait_ms, act in (*acts, (0, "release")):
            await trio.sleep(wait_ms / 1000)
            if act == "notice":
                notices.append(put_sound(playout, NOTICE, first=True))
            elif act == "cut":
                for notice in notices:
                    playout.cut(notice, "barge-in")
            else:
                getattr(playout, act)()
        await trio.sleep(20)
        phone.note_samples()
        assert playout.is_idle
        nursery.cancel_scope.cancel()
    return phone


interjections_ = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 40, 90, 200, 400, 1500]),
        st.sampled_from(["notice", "notice", "cut", "hold", "release", "resend"]),
    ),
    max_size=10,
)


@often
@given(lengths_, interjections_, st.sampled_from([None, 0.0, 0.03, 0.12]))
def test_what_goes_first_costs_none_of_what_it_overtakes(lengths, acts, delay_s):
    """Nothing is played behind a fence, and every sample of what waited is heard, in order."""
    script = Script(lengths, timed=True)
    clock = trio.testing.MockClock(autojump_threshold=0)
    phone = trio.run(interject, script, acts, delay_s, clock=clock)
    said = list(dict.fromkeys(n for n in phone.samples if n not in NOTICE))
    assert said == [*range(script.ends[-1]), *BEHIND]


# --- what is kept ---------------------------------------------------------------------------------


def test_what_was_added_is_given_back_from_a_position_on():
    """The audio from any position on is the very audio that was added there."""
    buffer = ResendBuffer()
    for piece in (b"0123", b"4567", b"89"):
        buffer.add(piece, 100)
    assert buffer.pop_from(6) == (6, [b"67", b"89"])
    assert buffer.pop_from(0) == (0, [b"0123", b"45"])
    assert buffer.pop_from(0) == (0, [])


def test_nothing_behind_its_end_is_given_back():
    """From a position that nothing was added behind, nothing comes, and the end is told."""
    buffer = ResendBuffer()
    buffer.add(b"0123", 100)
    assert buffer.pop_from(9) == (4, [])


def test_what_is_forgotten_is_not_given_back():
    """Audio from a position that is kept no more begins where the kept audio begins."""
    buffer = ResendBuffer()
    for piece in (b"0123", b"4567", b"89"):
        buffer.add(piece, 100)
    buffer.forget_all_but(6)
    assert buffer.starts_at == 4
    assert buffer.pop_from(1) == (4, [b"4567", b"89"])


def test_a_cleared_one_counts_on():
    """Positions after a clear go on where the audio had ended."""
    buffer = ResendBuffer()
    buffer.add(b"0123", 100)
    buffer.clear()
    buffer.add(b"4567", 100)
    assert buffer.pop_from(0) == (4, [b"4567"])


@given(st.lists(st.integers(1, 9), min_size=1, max_size=80), st.integers(1, 30))
def test_at_least_the_limit_is_kept_and_hardly_more(sizes, limit):
    """At least the limit is kept, if so much was added; and at most so many pieces more."""
    buffer = ResendBuffer()
    for count, size in enumerate(sizes, 1):
        buffer.add(bytes(size), limit)
        assert buffer.size == sum(sizes[:count]) - buffer.starts_at
        assert min(limit, sum(sizes[:count])) <= buffer.size
        assert buffer.size < limit + (SPARE_PIECES + 1) * max(sizes)
    buffer.forget_all_but(limit)
    assert min(limit, sum(sizes)) <= buffer.size < limit + max(sizes)


def test_the_limit_holds_for_what_is_sent_again():
    """Many small pieces that are taken back make no room for as many large ones."""
    buffer = ResendBuffer()
    for _ in range(300):
        buffer.add(b"1", 200)
    buffer.pop_from(0)
    for _ in range(300):
        buffer.add(bytes(9), 200)
        assert buffer.size < 200 + (SPARE_PIECES + 1) * 9


def test_what_is_needed_no_more_is_forgotten():
    """Whole pieces before a position go; what is at it and behind it stays."""
    buffer = ResendBuffer()
    for piece in (b"0123", b"4567", b"89"):
        buffer.add(piece, 100)
    buffer.forget_before(3)
    assert (buffer.starts_at, buffer.size) == (0, 10)
    buffer.forget_before(6)
    assert (buffer.starts_at, buffer.size) == (4, 6)
    assert buffer.pop_from(0) == (4, [b"4567", b"89"])
    buffer.forget_before(100)
    assert (buffer.starts_at, buffer.size) == (4, 0)


async def test_the_words_of_a_long_answer_are_bounded(playout, autojump_clock):
    """Of an answer of minutes, the times of the last words are kept, and all are heard."""
    utterance = add(playout, 1, "", 0, complete=False)
    text, most = "one two three ", 0
    words = tuple(WordTiming(word, at_s, at_s + 1) for at_s, word in enumerate(text.split()))
    for _ in range(60):
        utterance.add_text(text)
        audio = AgentAudio(bytes(6000), 1000, text, words, last=True)
        playout.add_audio(utterance, audio, trio.current_time())
        await trio.sleep(3)
        most = max(most, sum(len(segment.words) for segment in utterance.segments.pieces))
    await trio.sleep(1)
    assert most <= 12
    assert utterance.heard.split() == text.split() * 60
    assert utterance.basis == "words"
