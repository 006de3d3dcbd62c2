"""What players report, what it changes, and when the playout checks without a report."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import trio
import trio.testing

from bargein.bridge.playout._playout import (
    CHUNK_S,
    DONE_REPORT_S,
    FLUSH_REPORT_S,
    FORESEEN_S,
    LEAD_S,
    PLAYER_S,
    START_REPORT_S,
    TICK_S,
    VOICE_S,
    Playout,
    changes_at_s,
    has_started,
    is_heard,
    next_to_send,
    next_word_s,
    voice_until_s,
)
from bargein.bridge.playout._utterance import Utterance
from bargein.events import AgentAudio

from .conftest import FakeRun, HoldingDeck, Timers, add, playout_of, say


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


@pytest.mark.parametrize(("off_ms", "plans"), [(0, False), (15, False), (60, True)])
async def test_a_player_that_is_where_it_was_foreseen_costs_no_look(
    autojump_clock, deck, nursery, off_ms, plans
):
    """Its reports are taken in as they come; a look is planned anew when it is off by 20 ms."""
    planned: list[float] = []
    timers = Timers(nursery)

    def call_at(key: object, at_s: float, fn: Callable[[], None]) -> None:
        planned.append(at_s)
        timers.set(key, at_s, fn)

    playout = Playout(deck, deck, call_at)
    utterance = add(playout, 1, "one two three", 3000)
    playout.report(1, "start", 0)
    await trio.sleep(1)
    playout.report(1, "position", 1000)
    await trio.sleep(0.001)
    planned.clear()
    playout.report(1, "position", 1001 + off_ms)
    assert bool(planned) is plans
    assert utterance.played.sure_position_ms(trio.current_time()) == 1001 + off_ms
    for played_ms in range(1250, 3000, 250):
        await trio.sleep(0.25)
        playout.report(1, "position", played_ms)
    await trio.sleep(4)
    assert deck.sent_ms == {1: 3000}
    assert len(deck.told("finished")) == 1


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


async def test_a_player_that_stops_reporting_is_carried_on_for_half_a_second(
    autojump_clock, deck, playout
):
    """Then its position stands, nothing more is sent, and the next report sets all going again."""
    utterance = add(playout, 1, "one two three four five six", 6000)
    await trio.sleep(0.4)
    playout.report(1, "position", 400)
    for _ in range(8):
        await trio.sleep(1)
        assert utterance.played.position_ms(trio.current_time()) == 900
        assert deck.sent_ms[1] <= 900 + 1000 * LEAD_S
    assert utterance.heard == "one"  # the next word ends at 1.56 s
    playout.report(1, "position", 1200)
    await trio.sleep(0.45)
    assert utterance.heard == "one two"
    await trio.sleep(3)
    assert utterance.played.position_ms(trio.current_time()) == 1700
    playout.cut(utterance, "barge-in")
    await trio.sleep(1)
    assert (utterance.played.cut_at_ms, utterance.heard) == (1700, "one two")


async def test_holds_and_new_audio_carry_no_silent_player_further(autojump_clock, deck, nursery):
    """Neither coughs nor a slow voice make more of the last report."""
    playout = playout_of(HoldingDeck(), nursery)
    utterance = add(playout, 1, "one two three four five six", 1000, complete=False)
    await trio.sleep(0.1)
    playout.report(1, "position", 100)
    for _ in range(6):
        await trio.sleep(0.4)
        playout.hold()
        await trio.sleep(0.4)
        playout.release()
        say(playout, utterance, "", 100)
    assert utterance.played.position_ms(trio.current_time()) == 600


async def test_what_is_said_next_to_a_silent_player_counts_from_its_next_report(
    autojump_clock, deck, playout
):
    """An utterance that follows the cut one neither starts nor is heard by the clock."""
    first = add(playout, 1, "one two", 2000)
    await trio.sleep(0.2)
    playout.report(1, "position", 200)
    await trio.sleep(2)
    playout.cut(first, "barge-in")
    second = add(playout, 2, "three four", 2000)
    await trio.sleep(5)
    assert (second.played.started, second.heard, deck.sent_ms[2]) == (False, "", 400)
    playout.report(2, "start", 0)
    await trio.sleep(0.2)
    assert second.played.started
    for played_ms in range(250, 2000, 250):
        await trio.sleep(0.25)
        playout.report(2, "position", played_ms)
    playout.report(2, "done", 2000)
    await trio.sleep(0.7)
    assert second.heard == "three four"


async def test_a_voice_is_not_blamed_for_a_silent_player(autojump_clock, deck, playout):
    """A voice that waits until its earlier audio is heard has no deadline meanwhile."""
    utterance = add(playout, 1, "one two three", 1000, complete=False)
    await trio.sleep(0.1)
    playout.report(1, "position", 100)
    await trio.sleep(20)
    assert not deck.told("voice failed", "finished")
    assert not utterance.finished


async def test_a_player_that_is_silent_for_good_is_given_up(autojump_clock, deck, playout):
    """After 30 s the rest is cut where it was last known to be, so that nothing waits for ever."""
    utterance = add(playout, 1, "one two three four five six", 6000)
    await trio.sleep(0.4)
    playout.report(1, "position", 400)
    await trio.sleep(PLAYER_S + 0.1)
    told = deck.told("player failed", "finished")
    assert told == [(30400, "player failed", 1, None), (30400, "finished", 1, "cut")]
    assert utterance.played.cut_at_ms == 900


async def test_a_player_without_positions_goes_by_the_clock(autojump_clock, deck, playout):
    """One that tells only of starts and ends owes nothing in between."""
    utterance = add(playout, 1, "one two three four five six", 6000)
    playout.report(1, "start", 0)
    await trio.sleep(3)
    assert utterance.played.position_ms(trio.current_time()) == 3000
    await trio.sleep(2.9)
    playout.report(1, "done", 6000)
    await trio.sleep(0.7)
    assert deck.told("finished")[0][3] == "whole"


async def test_a_player_that_reports_nonsense_goes_by_the_clock(autojump_clock, deck, playout):
    """Positions of speech that is over show that it is alive, and nothing else."""
    first = add(playout, 1, "one", 300)
    playout.report(1, "position", 100)
    await trio.sleep(1)
    assert first.finished
    add(playout, 2, "two three", 3000)
    for _ in range(12):
        await trio.sleep(0.3)
        playout.report(1, "position", 5)
    assert deck.told("finished")[-1][2:] == (2, "whole")


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
    assert playout.utterances[0].played.position_ms(trio.current_time()) == pytest.approx(40)


async def test_a_late_player_is_not_sent_too_much(autojump_clock, deck, playout):
    """The lead counts from what was played, over all utterances that were sent."""
    run = FakeRun()
    first = add(playout, 1, "one", 200, run=run)
    second = add(playout, 2, "two", 2000, run=run)
    await trio.sleep(0.1)
    playout.report(1, "start", 0)
    await trio.testing.wait_all_tasks_blocked()
    assert first.played.sent_ms + second.played.sent_ms <= LEAD_S * 1000 + 100
    await trio.sleep(0.15)
    assert first.played.position_ms(trio.current_time()) == pytest.approx(150)
    assert second.played.position_ms(trio.current_time()) == 0


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
        assert 400 <= utterance.played.position_ms(now_s) <= utterance.played.sent_ms <= 1800
        assert utterance.heard in ("one", "one two", "one two three")
    playout.cut(utterance, "barge-in")
    playout.report(1, "flushed", played_ms)
    await trio.sleep(FLUSH_REPORT_S + 0.01)
    assert 400 <= (utterance.played.cut_at_ms or 0) <= utterance.played.sent_ms
    assert utterance.heard in ("one", "one two", "one two three")
    assert utterance.settled


async def test_reports_of_what_is_unknown_are_ignored(autojump_clock, deck, playout):
    """Unknown numbers, and starts before anything was sent, change nothing."""
    playout.report(7, "done", 100)
    utterance = Utterance(1, None, interruptible=True)  # type: ignore[arg-type]  # no answer
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
    assert utterance.played.position_ms(trio.current_time()) == 80
    say(playout, utterance, "two", 300)
    await trio.sleep(0.05)
    assert utterance.played.position_ms(trio.current_time()) == pytest.approx(130)


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
    assert (utterance.heard, utterance.settled, utterance.played.cut_at_ms) == (
        "one two",
        True,
        720,
    )
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
    assert utterance.played.cut_at_ms == pytest.approx(700)
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
    utterance.played.report(0, trio.current_time(), stalled=False)  # the player knows of both
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


# --- when something is due ------------------------------------------------------------------------


RUN = object()


def utterance(ms: int = 1000, *, sent: bool = True, run: object = None) -> Utterance:
    """An utterance with audio that was sent at 0 s, or waits."""
    made = Utterance(1, None, interruptible=True)  # type: ignore[arg-type]  # no answer
    made.runs = [run] if run else []  # type: ignore[list-item]  # only its identity counts
    made.generated = "one"
    made.add_audio(AgentAudio(bytes(2 * ms), 1000, "one"))
    if sent:
        made.played.sent(ms, 0.0, 0.0)
    else:
        made.waiting.append(bytes(2 * ms))
    made.text_complete = made.audio_complete = True
    return made


def test_the_first_sound_is_due_when_it_was_sent_or_when_it_is_reported():
    """A player that reports gets a little time to do so; one that never did is not waited for."""
    one = utterance()
    assert has_started(one, 0.0, reports=False)
    assert not has_started(one, START_REPORT_S - 0.01, reports=True)
    assert has_started(one, START_REPORT_S, reports=True)
    one.played.report(0, 0.0, stalled=False)
    assert has_started(one, 0.0, reports=True)
    assert not has_started(utterance(sent=False), 99, reports=False)


def test_the_last_sound_is_due_when_all_was_sent_and_played():
    """By the clock at the end of the audio; a player that reports may say so, for a while."""
    one = utterance()
    assert not is_heard(one, 0.99)
    assert is_heard(one, 1.0)
    one.played.report(500, 0.5, stalled=False)
    assert not is_heard(one, 1.4)
    assert is_heard(one, 1.0 + DONE_REPORT_S)
    one.done_reported = True
    assert is_heard(one, 1.0)
    one.audio_complete = False
    assert not is_heard(one, 99)
    assert is_heard(utterance(0), 0.0)


def test_a_voice_is_given_up_when_a_whole_text_gets_no_audio():
    """Its time begins where its audio ends; while audio waits, or text comes, it has no end."""
    one = utterance()
    assert voice_until_s(one) == math.inf
    one.audio_complete = False
    assert voice_until_s(one) == pytest.approx(1.0 + VOICE_S)
    one.waits_since_s = 5.0
    assert voice_until_s(one) == 5.0 + VOICE_S
    one.text_complete = False
    assert voice_until_s(one) == math.inf
    assert voice_until_s(utterance(sent=False)) == math.inf


def test_what_was_sent_is_looked_at_by_its_times():
    """At its start and end, with and without the time for a report; what was not sent, never.

    The end of a voice that is not complete moves with each piece, and is none.
    """
    assert changes_at_s(utterance(sent=False)) == ()
    assert changes_at_s(utterance()) == pytest.approx(
        (0.0, START_REPORT_S, 1.0, 1.0 + DONE_REPORT_S)
    )
    growing = utterance(300)
    growing.audio_complete = False
    assert changes_at_s(growing) == pytest.approx((0.0, START_REPORT_S))


def test_a_word_is_looked_for_when_it_ends():
    """Not far ahead, as more may get known; soon, if its end cannot be foreseen; else never."""
    assert next_word_s(utterance(sent=False), 0.3) == math.inf
    one = utterance(400)
    assert next_word_s(one, 0.1) == pytest.approx(0.1 + TICK_S)
    one.hear(100)
    assert next_word_s(one, 0.1) == pytest.approx(0.4, abs=0.003)
    slow = utterance(4000)
    slow.hear(100)
    assert next_word_s(slow, 0.1) == pytest.approx(0.1 + FORESEEN_S)
    one.hear(400)
    assert next_word_s(one, 0.4) == pytest.approx(0.4 + TICK_S)


def test_only_what_is_of_one_run_is_sent_ahead_of_what_is_heard():
    """An utterance follows one of its own run at once, and waits for the end of any other."""
    assert next_to_send([]) is None
    first, waits = utterance(run=RUN), utterance(sent=False, run=RUN)
    assert next_to_send([first, waits]) is waits
    assert next_to_send([waits, first]) is waits
    assert next_to_send([utterance(run=object()), waits]) is None
    assert next_to_send([utterance(), utterance(sent=False)]) is None


def test_nothing_overtakes_a_voice_that_is_not_ready():
    """While audio of the front is still to come, nothing of the next is sent."""
    first, waits = utterance(run=RUN), utterance(sent=False, run=RUN)
    first.audio_complete = False
    assert next_to_send([first, waits]) is None
