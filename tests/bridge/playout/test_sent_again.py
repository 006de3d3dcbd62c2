"""A player that lost its audio gets again what it has not played."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from bargein.bridge.playout._playout import CHUNK_S, LEAD_S
from bargein.bridge.playout._resend import LONGEST_WORD_S
from bargein.bridge.playout._utterance_timing import VOICE_S

from .conftest import HoldingDeck, add, playout_of, say


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
