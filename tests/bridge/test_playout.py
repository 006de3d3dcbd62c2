"""The playout alone: a transport and a listener that write down what they are told."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from bridge._due import DONE_REPORT_S, VOICE_S
from bridge._ledger import Utterance
from bridge._playout import CHUNK_S, FLUSH_REPORT_S, LEAD_S, LONGEST_WORD_S, Playout
from bridge.events import AgentAudio
from routes._alarms import Alarms

RATE = 1000


class Deck:
    """Transport and listener in one; keeps everything with its time in milliseconds."""

    audio = True
    sample_rate_hz = RATE

    def __init__(self) -> None:
        self.log: list[tuple[int, str, int, Any]] = []
        self.sent_ms: dict[int, int] = {}

    def note(self, what: str, number: int, value: Any = None) -> None:
        self.log.append((round(trio.current_time() * 1000), what, number, value))

    def play(self, utterance: int, pcm: bytes) -> None:
        self.sent_ms[utterance] = self.sent_ms.get(utterance, 0) + len(pcm) // 2

    def clear(self, utterance: int, reason: str) -> None:
        self.note("clear", utterance, reason)

    def send(self, message: object) -> None:
        raise AssertionError("the playout sends no events")

    def utterance_started(self, utterance: Utterance) -> None:
        self.note("started", utterance.number)

    def words_heard(self, utterance: Utterance, text: str) -> None:
        self.note("heard", utterance.number, text)

    def utterance_queued(self, utterance: Utterance) -> None:
        self.note("queued", utterance.number)

    def voice_failed(self, utterance: Utterance) -> None:
        self.note("voice failed", utterance.number)

    def utterance_finished(self, utterance: Utterance) -> None:
        self.note("finished", utterance.number, "cut" if utterance.is_cut else "whole")

    def utterance_settled(self, utterance: Utterance) -> None:
        self.note("settled", utterance.number, utterance.heard)

    def told(self, *whats: str) -> list[tuple[int, str, int, Any]]:
        return [entry for entry in self.log if entry[1] in whats]


class FakeRun:
    """All that the playout wants of a run: to be told from another."""

    is_stale = False


def playout_of(deck: Deck, nursery: trio.Nursery) -> Playout:
    return Playout(deck, deck, Alarms(nursery, lambda fn: fn()).put)


@pytest.fixture
async def deck():
    return Deck()


@pytest.fixture
async def playout(deck, nursery):
    return playout_of(deck, nursery)


def add(
    playout: Playout, number: int, text: str, ms: int, *, run: Any = None, complete: bool = True
) -> Utterance:
    """Queue an utterance whose text was said in `ms` milliseconds."""
    utterance = Utterance(number, None, interruptible=True)  # type: ignore[arg-type]  # no turn
    utterance.runs = [run] if run else []
    utterance.generated = text
    playout.add(utterance)
    say(playout, utterance, text, ms)
    utterance.audio_complete = complete
    playout.text_complete(utterance)
    return utterance


def say(playout: Playout, utterance: Utterance, text: str, ms: int, *, last: bool = True) -> None:
    audio = AgentAudio(bytes(2 * ms), RATE, text, last=last)
    utterance.add_audio(audio)
    playout.add_audio(utterance, audio.pcm, trio.current_time())


async def test_audio_is_never_more_than_the_lead_ahead(autojump_clock, deck, playout):
    """At each moment at most 400 ms more than was played is with the transport."""
    add(playout, 1, "one two", 2000)
    most = 0.0
    for step in range(200):
        await trio.testing.wait_all_tasks_blocked()
        most = max(most, deck.sent_ms[1] - step * 10)
        await trio.sleep(0.01)
    assert most == pytest.approx(LEAD_S * 1000)
    assert deck.sent_ms == {1: 2000}


async def test_an_utterance_is_told_from_start_to_end(autojump_clock, deck, playout):
    """Started, its words, queued, finished, settled: each once, at its time."""
    add(playout, 1, "one two", 700)
    await trio.sleep(2)
    assert deck.log[0] == (0, "started", 1, None)
    assert "".join(text for *_, text in deck.told("heard")) == "one two"
    assert deck.told("queued") == [(320, "queued", 1, None)]
    assert deck.log[-2:] == [(700, "finished", 1, "whole"), (700, "settled", 1, "one two")]
    assert playout.is_idle


async def test_utterances_of_one_run_follow_without_a_gap(autojump_clock, deck, playout):
    """Audio of the next utterance of the same run is sent before the first is over."""
    run = FakeRun()
    add(playout, 1, "one", 300, run=run)
    add(playout, 2, "two", 300, run=run)
    await trio.testing.wait_all_tasks_blocked()
    assert deck.sent_ms == {1: 300, 2: 80}  # whole pieces of 40 ms
    await trio.sleep(1)
    assert [(at, n) for at, _, n, _ in deck.told("started")] == [(0, 1), (300, 2)]
    assert deck.told("finished")[-1][0] == 600


async def test_a_fence_never_takes_what_may_not_be_cut(autojump_clock, deck, playout):
    """Audio of another run waits until the one in front was heard; cutting it clears nothing."""
    add(playout, 1, "one", 300, run=FakeRun())
    second = add(playout, 2, "two", 300, run=FakeRun())
    await trio.sleep(0.1)
    assert deck.sent_ms == {1: 300}
    playout.cut(second, "barge-in")
    await trio.sleep(1)
    assert deck.told("clear") == []
    assert deck.told("finished") == [(100, "finished", 2, "cut"), (300, "finished", 1, "whole")]


async def test_a_cut_behind_does_not_hasten_what_plays(autojump_clock, deck, playout):
    """The lead stays the lead for what plays when something behind it is cut."""
    add(playout, 1, "one", 3000, run=FakeRun())
    second = add(playout, 2, "two", 300, run=FakeRun())
    await trio.sleep(1)
    playout.cut(second, "barge-in")
    await trio.testing.wait_all_tasks_blocked()
    assert deck.sent_ms[1] <= 1000 + LEAD_S * 1000


async def test_audio_that_comes_out_of_order_waits_for_its_turn(autojump_clock, deck, playout):
    """A voice may be ready with the second utterance before the first."""
    first = add(playout, 1, "", 0, complete=False)
    first.generated = "one"
    add(playout, 2, "two", 300)
    await trio.sleep(1)
    assert deck.sent_ms == {}
    say(playout, first, "one", 300)
    first.audio_complete = True
    playout.wake()
    await trio.sleep(1)
    assert [n for _, _, n, _ in deck.told("started")] == [1, 2]
    assert [text for *_, text in deck.told("settled")] == ["one", "two"]


async def test_silence_falls_in_the_step_of_the_cut(autojump_clock, deck, playout):
    """cut() returns with the transport told and the queue empty, and may be called again."""
    first = add(playout, 1, "one two", 700)
    await trio.sleep(0.35)
    with trio.testing.assert_no_checkpoints():
        playout.cut(first, "barge-in")
        playout.cut(first, "barge-in")
    assert deck.log[-3:] == [
        (350, "clear", 1, "barge-in"),
        (350, "finished", 1, "cut"),
        (350, "settled", 1, "one"),
    ]
    sent = dict(deck.sent_ms)
    say(playout, first, " late", 300)
    await trio.sleep(1)
    assert deck.sent_ms == sent
    assert playout.is_idle


async def test_a_voice_slower_than_speech_makes_a_gap(autojump_clock, deck, playout):
    """The clock stands still while the transport has nothing, and goes on with the next audio."""
    first = add(playout, 1, "one ", 400, complete=False)
    first.generated = "one two"
    await trio.sleep(1)
    assert playout.is_audible
    say(playout, first, "two", 300)
    first.audio_complete = True
    await trio.sleep(0.15)
    playout.advance(trio.current_time())
    assert first.position_ms(trio.current_time()) == pytest.approx(550)
    assert first.heard == "one"
    await trio.sleep(1)
    assert deck.told("finished") == [(1300, "finished", 1, "whole")]


async def test_a_voice_that_never_completes_is_given_up(autojump_clock, deck, playout):
    """Ten seconds after the audio ran out the utterance is over with what was played."""
    first = add(playout, 1, "one ", 400, complete=False)
    first.generated = "one two"
    second = add(playout, 2, "next", 400)
    await trio.sleep(VOICE_S + 2)
    at_ms = 400 + VOICE_S * 1000
    assert deck.told("voice failed") == [(at_ms, "voice failed", 1, None)]
    assert deck.told("settled") == [
        (at_ms, "settled", 1, "one"), (at_ms + 400, "settled", 2, "next"),
    ]  # fmt: skip
    assert second.finished


async def test_a_voice_has_time_from_when_it_is_its_turn(autojump_clock, deck, playout):
    """What is behind a long utterance is not given up while that one is said."""
    add(playout, 1, "one", 15_000)
    second = add(playout, 2, "", 0, complete=False)
    second.generated = "two"
    await trio.sleep(20)
    say(playout, second, "two", 400)
    second.audio_complete = True
    playout.wake()
    await trio.sleep(1)
    assert deck.told("voice failed") == []
    assert deck.told("settled")[-1] == (20_400, "settled", 2, "two")


async def test_a_voice_has_no_deadline_while_text_may_come(autojump_clock, deck, playout):
    """An answer that is still being thought is waited for."""
    utterance = Utterance(1, None, interruptible=True)  # type: ignore[arg-type]  # no turn
    utterance.generated = "one"
    playout.add(utterance)
    await trio.sleep(100)
    assert deck.log == []
    assert not playout.is_idle


async def test_an_utterance_without_audio_is_over_at_once(autojump_clock, deck, playout):
    """A text that gives no sound is finished, never started, and holds up nothing."""
    add(playout, 1, "…", 0)
    add(playout, 2, "two", 300)
    await trio.sleep(1)
    assert deck.told("finished") == [(0, "finished", 1, "whole"), (300, "finished", 2, "whole")]
    assert [n for _, _, n, _ in deck.told("started")] == [2]


# --- players that report --------------------------------------------------------------------------


async def test_a_reporting_player_decides_when_speech_starts_and_ends(
    autojump_clock, deck, playout
):
    """A player that starts 200 ms late is believed, to the end."""
    add(playout, 0, "zero", 40)
    playout.report(0, "start", 0)
    await trio.testing.wait_all_tasks_blocked()
    playout.report(0, "done", 40)
    add(playout, 1, "one two", 700)
    await trio.sleep(0.2)
    assert [n for _, _, n, _ in deck.told("started")] == [0]
    playout.report(1, "start", 0)
    assert deck.told("started")[-1] == (200, "started", 1, None)
    await trio.sleep(0.7)
    assert len(deck.told("finished")) == 1
    await trio.sleep(0.05)
    playout.report(1, "done", 700)
    assert deck.told("finished")[-1] == (950, "finished", 1, "whole")


async def test_a_lost_start_and_a_lost_done_are_bounded(autojump_clock, deck, playout):
    """The clock is believed 300 ms after the first sound, and 500 ms after the last."""
    add(playout, 0, "zero", 40)
    await trio.testing.wait_all_tasks_blocked()
    playout.report(0, "start", 0)
    await trio.sleep(2)
    assert deck.told("finished")[0][0] == 40 + DONE_REPORT_S * 1000
    add(playout, 1, "one two", 700)
    await trio.sleep(3)
    assert deck.told("started")[-1] == (2300, "started", 1, None)
    assert deck.told("finished")[-1] == (2700, "finished", 1, "whole")


async def test_a_report_of_the_next_utterance_ends_the_one_before(autojump_clock, deck, playout):
    """Players play in order: who has begun the second has finished the first."""
    run = FakeRun()
    add(playout, 1, "one", 200, run=run)
    add(playout, 2, "two", 500, run=run)
    await trio.testing.wait_all_tasks_blocked()
    playout.report(1, "start", 0)
    await trio.sleep(0.25)
    playout.report(2, "position", 40)
    assert deck.told("finished") == [(250, "finished", 1, "whole")]
    assert deck.told("started") == [(0, "started", 1, None), (250, "started", 2, None)]
    assert playout.utterances[0].position_ms(trio.current_time()) == pytest.approx(40)


async def test_a_late_player_is_not_sent_too_much(autojump_clock, deck, playout):
    """The lead counts from what was played, over all utterances that were sent."""
    run = FakeRun()
    first = add(playout, 1, "one", 200, run=run)
    second = add(playout, 2, "two", 2000, run=run)
    await trio.sleep(0.1)
    playout.report(1, "start", 0)
    await trio.testing.wait_all_tasks_blocked()
    assert first.sent_ms + second.sent_ms <= LEAD_S * 1000 + 100
    await trio.sleep(0.15)
    assert first.position_ms(trio.current_time()) == pytest.approx(150)
    assert second.position_ms(trio.current_time()) == 0


@pytest.mark.parametrize("played_ms", [-5.0, math.nan, 1e9, math.inf, -math.inf, 200.0])
async def test_nonsense_from_a_player_stays_possible(autojump_clock, deck, playout, played_ms):
    """No report makes heard words unheard, or lets more be heard than was sent."""
    utterance = add(playout, 1, "one two three four", 1800)
    await trio.sleep(0.4)
    playout.report(1, "position", 400)
    assert utterance.heard == "one"
    for kind in ("position", "underrun", "start", "flushed"):
        playout.report(1, kind, played_ms)
        now_s = trio.current_time()
        assert 400 <= utterance.position_ms(now_s) <= utterance.sent_ms <= 1800
        assert utterance.heard in ("one", "one two", "one two three")
    playout.cut(utterance, "barge-in")
    playout.report(1, "flushed", played_ms)
    await trio.sleep(FLUSH_REPORT_S + 0.01)
    assert 400 <= (utterance.cut_at_ms or 0) <= utterance.sent_ms
    assert utterance.heard in ("one", "one two", "one two three")
    assert utterance.settled


async def test_reports_of_what_is_unknown_are_ignored(autojump_clock, deck, playout):
    """Unknown numbers, and starts before anything was sent, change nothing."""
    playout.report(7, "done", 100)
    utterance = Utterance(1, None, interruptible=True)  # type: ignore[arg-type]  # no turn
    utterance.generated = "one"
    playout.add(utterance)
    playout.report(1, "start", 0)  # nothing was sent
    assert deck.log == []
    say(playout, utterance, "one", 300)
    utterance.audio_complete = True
    playout.text_complete(utterance)
    await trio.testing.wait_all_tasks_blocked()
    playout.report(1, "done", 300)
    assert utterance.finished
    playout.report(1, "position", 100)
    playout.report(1, "flushed", 100)
    assert len(deck.told("finished")) == len(deck.told("settled")) == 1


async def test_done_before_all_was_sent_is_no_end(autojump_clock, deck, playout):
    """A player that calls itself done too early is asked to play on."""
    utterance = add(playout, 1, "one two", 2000)
    await trio.sleep(0.1)
    playout.report(1, "done", 400)
    assert not utterance.finished
    await trio.sleep(5)
    assert deck.told("finished")[0][0] >= 1700


async def test_an_underrun_stops_the_clock_until_more_is_sent(autojump_clock, deck, playout):
    """While the player is dry nothing is heard; with new audio the clock goes on from there."""
    utterance = add(playout, 1, "one ", 200, complete=False)
    utterance.generated = "one two"
    await trio.sleep(0.1)
    playout.report(1, "underrun", 80)
    await trio.sleep(1)
    assert utterance.position_ms(trio.current_time()) == 80
    say(playout, utterance, "two", 300)
    await trio.sleep(0.05)
    assert utterance.position_ms(trio.current_time()) == pytest.approx(130)


async def test_a_flush_report_decides_what_was_heard(autojump_clock, deck, playout):
    """What the player says in time is final; before that only sure words count."""
    utterance = add(playout, 1, "one two three four", 1800)
    await trio.sleep(0.65)
    playout.report(1, "position", 600)
    await trio.sleep(0.1)
    playout.cut(utterance, "barge-in")
    assert (utterance.heard, utterance.settled, playout.is_idle) == ("one", False, False)
    await trio.sleep(FLUSH_REPORT_S - 0.01)
    playout.report(1, "flushed", 720)
    assert (utterance.heard, utterance.settled, utterance.cut_at_ms) == ("one two", True, 720)
    playout.report(1, "flushed", 1800)
    await trio.sleep(1)
    assert utterance.heard == "one two"
    assert len(deck.told("settled")) == 1


async def test_without_a_flush_report_the_clock_decides(autojump_clock, deck, playout):
    """After 150 ms the position that the clock gave at the cut is final."""
    utterance = add(playout, 1, "one two three four", 1800)
    await trio.sleep(0.65)
    playout.report(1, "position", 600)
    await trio.sleep(0.1)
    playout.cut(utterance, "barge-in")
    await trio.sleep(1)
    assert deck.told("settled") == [(900, "settled", 1, "one two")]
    assert utterance.cut_at_ms == pytest.approx(700)
    assert utterance.basis == "reported"


async def test_each_flush_settles_its_own(autojump_clock, deck, playout):
    """Two cut utterances wait for the player, each for its own report."""
    run = FakeRun()
    first = add(playout, 1, "one", 200, run=run)
    second = add(playout, 2, "two", 700, run=run)
    await trio.sleep(0.1)
    playout.report(1, "position", 100)
    playout.report(2, "position", 20)
    first = add(playout, 3, "three", 300)
    await trio.sleep(0.7)
    playout.report(3, "position", 20)
    for utterance in playout.utterances:
        playout.cut(utterance, "barge-in")
    playout.report(3, "flushed", 40)
    assert (second.settled, first.settled) == (False, True)
    await trio.sleep(1)
    assert second.settled


async def test_a_listener_may_look_while_it_is_told(autojump_clock, deck, playout):
    """Advancing inside a notification settles nothing twice."""
    run = FakeRun()
    for number in (1, 2):
        utterance = add(playout, number, "one two", 150, run=run)
    await trio.sleep(0.05)
    playout.report(1, "position", 10)
    utterance.report(0, trio.current_time(), stalled=False)  # the player knows of both
    for utterance in playout.utterances:
        playout.cut(utterance, "barge-in")
    tell = deck.utterance_settled

    def tell_and_look(utterance: Utterance) -> None:
        tell(utterance)
        playout.advance(trio.current_time())

    deck.utterance_settled = tell_and_look
    await trio.sleep(1)
    assert [n for _, _, n, _ in deck.told("settled")] == [1, 2]


async def test_closing_settles_everything_now(autojump_clock, deck, playout):
    """What plays and what waits for a flush is final when close() returns."""
    first = add(playout, 1, "one two", 700)
    await trio.sleep(0.1)
    playout.report(1, "position", 100)
    playout.cut(first, "barge-in")
    second = add(playout, 2, "three", 700)
    with trio.testing.assert_no_checkpoints():
        playout.close("over")
    assert first.settled
    assert second.settled
    assert playout.is_idle


async def test_a_listener_may_cut_what_it_is_told_of(autojump_clock, deck, playout):
    """Cutting inside a notification neither loses nor repeats anything."""
    deck.utterance_started = lambda u: playout.cut(u, "at once")  # type: ignore[method-assign]
    utterance = add(playout, 1, "one two", 700)
    await trio.sleep(1)
    assert deck.told("finished") == [(0, "finished", 1, "cut")]
    assert utterance.settled


async def test_what_is_told_may_add_more(autojump_clock, deck, playout):
    """An utterance that is added while another is told of is played, without another wake-up."""
    add(playout, 1, "one", 300)
    deck.utterance_queued = lambda u: u.number == 1 and add(playout, 2, "two", 300)  # type: ignore[method-assign]
    await trio.sleep(2)
    assert [n for _, _, n, _ in deck.told("finished")] == [1, 2]


def test_the_chunk_divides_the_lead():
    """The lead is a whole number of chunks, so it can be used to the full."""
    assert pytest.approx(round(LEAD_S / CHUNK_S)) == LEAD_S / CHUNK_S


# --- held -----------------------------------------------------------------------------------------


async def test_a_word_is_told_when_it_ends(autojump_clock, deck, playout):
    """No earlier, and at most one chunk later; silence in between is not looked at."""
    add(playout, 1, "one two three four", 3600)
    await trio.sleep(5)
    told = deck.told("heard")
    assert [text for _, _, _, text in told] == ["one", " two", " three", " four"]
    for (at_ms, *_), ends_ms in zip(told, (600, 1400, 2600, 3600), strict=True):
        assert ends_ms <= at_ms <= ends_ms + 1000 * CHUNK_S + 2


async def test_words_of_a_steady_voice_are_told_with_its_audio(autojump_clock, deck, playout):
    """It comes in frames of 20 ms: a word is told with the first frame after its end.

    As long as its length is not known, it says 15 characters a second.
    """
    utterance = Utterance(1, None, interruptible=True)  # type: ignore[arg-type]  # no turn
    utterance.generated = "one two three four"
    playout.add(utterance)
    for number in range(55):
        say(playout, utterance, "" if number else utterance.generated, 20, last=False)
        await trio.sleep(0.02)
    told = deck.told("heard")
    assert [text for _, _, _, text in told] == ["one", " two", " three"]
    for (at_ms, *_), chars in zip(told, (3, 7, 13), strict=True):
        assert chars / 15 * 1000 <= at_ms <= chars / 15 * 1000 + 22


class BrokenDeck(Deck):
    """A player that raises for some of what it is given."""

    def play(self, utterance: int, pcm: bytes) -> None:
        if 0.5 < trio.current_time() < 0.8:
            raise OSError("the line is bad")
        super().play(utterance, pcm)


async def test_what_follows_a_failure_of_the_transport_is_played(autojump_clock, nursery):
    """A look that raises does not end the looking: the utterance comes to its end."""
    failures: list[Exception] = []

    def notify(look: Callable[[], None]) -> None:
        try:
            look()
        except OSError as failure:
            failures.append(failure)

    deck = BrokenDeck()
    playout = Playout(deck, deck, Alarms(nursery, notify).put)
    utterance = add(playout, 1, "one two three four", 2000)
    await trio.sleep(5)
    assert failures
    assert deck.sent_ms[1] < 2000
    assert utterance.settled
    assert utterance.heard == "one two three four"


class HoldingDeck(Deck):
    """A player that can hold."""

    def hold(self, on: bool) -> None:
        self.note("hold", 0, on)


async def test_a_player_that_holds_goes_on_with_the_sample(autojump_clock, nursery):
    """Held for 100 s in the middle, the utterance ends 100 s later, and no word is lost."""
    deck = HoldingDeck()
    playout = playout_of(deck, nursery)
    utterance = add(playout, 1, "one two three four", 2000)
    add(playout, 2, "five", 400)
    await trio.sleep(0.73)
    playout.hold()
    playout.hold()
    sent = dict(deck.sent_ms)
    await trio.sleep(100)
    assert utterance.position_ms(trio.current_time()) == pytest.approx(730)
    assert deck.sent_ms == sent
    playout.release()
    playout.release()
    await trio.sleep(10)
    assert deck.told("hold") == [(730, "hold", 0, True), (100_730, "hold", 0, False)]
    assert deck.told("finished") == [
        (102_000, "finished", 1, "whole"),
        (102_400, "finished", 2, "whole"),
    ]
    assert "".join(t for _, _, n, t in deck.told("heard") if n == 1) == "one two three four"


async def test_a_player_that_cannot_hold_is_cleared(autojump_clock, deck, playout):
    """It is silent at once, and goes on from the last heard word, under a fresh number."""
    utterance = add(playout, 1, "one two three four", 1800)
    await trio.sleep(1)
    playout.hold()
    playout.hold()
    assert deck.told("clear") == [(1000, "clear", 1, "held")]
    await trio.sleep(100)
    assert utterance.position_ms(trio.current_time()) == pytest.approx(1000)
    assert playout.release() is True
    assert playout.release() is False
    await trio.sleep(10)
    # "two" begins at 400 ms, and the lead was 400 ms and a chunk more at the most.
    assert deck.sent_ms == {1: pytest.approx(1400, abs=41), 2: 1400}
    assert deck.told("finished") == [(102_400, "finished", 1, "whole")]
    assert "".join(text for _, _, _, text in deck.told("heard")) == "one two three four"
    assert deck.told("queued")[-1][2] == 1


async def test_all_that_the_player_had_comes_again(autojump_clock, deck, playout):
    """Of two utterances in the player both are given again, in their order, before the next."""
    run = FakeRun()
    add(playout, 1, "one two", 700, run=run)
    second = add(playout, 2, "three", 500, run=run)
    await trio.sleep(0.5)
    assert set(deck.sent_ms) == {1, 2}
    playout.hold()
    assert deck.told("clear") == [(500, "clear", 2, "held")]
    third = add(playout, 3, "four", 300)
    playout.release()
    assert [u.play_number for u in playout.utterances] == [4, 5, 6]
    assert playout.new_number() == 7
    await trio.sleep(3)
    assert [entry[:3] for entry in deck.told("finished")] == [
        (1200, "finished", 1),
        (1700, "finished", 2),
        (2000, "finished", 3),
    ]
    assert (second.heard, third.heard) == ("three", "four")
    assert [n for _, _, n, _ in deck.told("started")] == [1, 2, 3]


async def test_what_a_flush_tells_of_a_hold_counts(autojump_clock, deck, playout):
    """The flush report moves the position back, older reports do not; the next is not begun."""
    run = FakeRun()
    utterance = add(playout, 1, "one two three", 1300, run=run)
    second = add(playout, 2, "four", 400, run=run)
    for step in range(20):
        playout.report(1, "position", 50 * step)
        await trio.sleep(0.05)
    playout.hold()
    playout.report(1, "position", 800)
    assert utterance.position_ms(trio.current_time()) == pytest.approx(1000)
    playout.report(1, "flushed", 960)
    playout.report(2, "flushed", 0)
    assert utterance.position_ms(trio.current_time()) == pytest.approx(960)
    await trio.sleep(1)
    playout.release()
    assert not second.is_reported
    await trio.sleep(0.1)
    assert deck.told("started") == [(0, "started", 1, None)]
    await trio.sleep(5)
    assert "".join(text for _, _, n, text in deck.told("heard") if n == 1) == "one two three"
    assert [n for _, _, n, _ in deck.told("finished")] == [1, 2]


async def test_words_that_a_report_tells_of_during_a_hold_are_heard(autojump_clock, nursery):
    """Where the player says that it stands further, its words are told at once."""
    deck = HoldingDeck()
    playout = playout_of(deck, nursery)
    add(playout, 1, "one two three", 1300)
    await trio.sleep(0.2)
    playout.report(1, "position", 200)
    await trio.sleep(0.1)
    playout.hold()
    assert deck.told("heard") == []
    playout.report(1, "position", 310)
    assert deck.told("heard") == [(300, "heard", 1, "one")]


async def test_a_hold_settles_the_cut_that_follows(autojump_clock, deck, playout):
    """A player that was cleared long ago is not asked again where it stopped."""
    utterance = add(playout, 1, "one two three", 1300)
    await trio.sleep(0.5)
    playout.report(1, "position", 480)
    playout.hold()
    playout.report(1, "flushed", 490)
    await trio.sleep(FLUSH_REPORT_S)
    playout.cut(utterance, "barge-in")
    assert utterance.settled
    assert (utterance.heard, utterance.cut_at_ms) == ("one", 490)
    assert len(deck.told("clear")) == 1
    assert playout.release() is False


async def test_a_cut_soon_after_a_hold_waits_for_the_flush(autojump_clock, deck, playout):
    """What was heard is settled by the report, or when its time since the hold is over."""
    utterance = add(playout, 1, "one two three", 1300)
    await trio.sleep(0.4)
    playout.report(1, "position", 390)
    playout.hold()
    await trio.sleep(FLUSH_REPORT_S - 0.05)
    playout.cut(utterance, "barge-in")
    assert not utterance.settled
    await trio.sleep(0.06)
    assert deck.told("settled")[0][0] == 400 + FLUSH_REPORT_S * 1000
    assert utterance.cut_at_ms == 390


# --- sent again -----------------------------------------------------------------------------------


async def test_the_last_report_is_all_that_a_lost_player_has_played(autojump_clock, nursery):
    """What the clock has carried on since is said again; what was told as heard stays so."""
    deck = HoldingDeck()
    playout = playout_of(deck, nursery)
    utterance = add(playout, 1, "one two three four five", 2300)
    await trio.sleep(0.75)
    playout.report(1, "position", 720)
    await trio.sleep(0.75)  # the connection is gone, and nobody knows
    playout.hold()
    assert utterance.heard == "one two three"
    await trio.sleep(5)
    playout.resend()
    assert deck.told("clear") == [(6500, "clear", 1, "sent again")]
    assert utterance.play_number == 1
    playout.release()
    assert utterance.play_number == 2
    assert utterance.position_ms(trio.current_time()) == pytest.approx(400)  # "two" begins
    assert utterance.heard == "one two three"
    await trio.sleep(5)
    assert "".join(t for _, _, _, t in deck.told("heard")) == "one two three four five"
    assert utterance.settled


async def test_what_is_kept_bounds_what_is_sent_again(autojump_clock, deck, playout):
    """Where nothing was reported for long, it begins with the oldest audio that is kept."""
    utterance = add(playout, 1, "one two three four five", 11_500)
    await trio.sleep(0.1)
    playout.report(1, "position", 80)
    await trio.sleep(6)
    playout.resend()
    begins_ms = utterance.position_ms(trio.current_time())
    kept_ms = 1000 * (LEAD_S + LONGEST_WORD_S)
    assert 6100 + 1000 * LEAD_S - begins_ms == pytest.approx(kept_ms, abs=2000 * CHUNK_S)


async def test_an_utterance_that_is_held_can_be_cut(autojump_clock, nursery):
    """The cut is at the sample at which it was held; what comes after plays."""
    deck = HoldingDeck()
    playout = playout_of(deck, nursery)
    utterance = add(playout, 1, "one two three four", 2000)
    await trio.sleep(0.5)
    playout.hold()
    await trio.sleep(3)
    playout.cut(utterance, "stopped")
    playout.release()
    add(playout, 2, "five", 400)
    await trio.sleep(3)
    assert utterance.cut_at_ms == pytest.approx(500)
    assert deck.told("finished") == [(3500, "finished", 1, "cut"), (3900, "finished", 2, "whole")]


async def test_no_voice_is_given_up_while_everything_is_held(autojump_clock, nursery):
    """The time that a voice may take stands still."""
    deck = HoldingDeck()
    playout = playout_of(deck, nursery)
    utterance = add(playout, 1, "one two", 100, complete=False)
    await trio.sleep(1)
    playout.hold()
    await trio.sleep(10 * VOICE_S)
    playout.release()
    say(playout, utterance, " three", 100)
    utterance.audio_complete = True
    playout.wake()
    await trio.sleep(2)
    assert not deck.told("voice failed")
    assert deck.told("finished")[0][3] == "whole"
