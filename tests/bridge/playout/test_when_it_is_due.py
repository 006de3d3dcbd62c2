"""What is due with utterances, one question at a time."""

from __future__ import annotations

import math

import pytest

from bargein.bridge.playout._utterance import Utterance
from bargein.bridge.playout._utterance_timing import (
    DONE_REPORT_S,
    FORESEEN_S,
    START_REPORT_S,
    TICK_S,
    VOICE_S,
    has_started,
    is_heard,
    looks_at_s,
    next_to_send,
    next_word_s,
    voice_until_s,
)
from bargein.events import AgentAudio

RUN = object()


def utterance(ms: int = 1000, *, sent: bool = True, run: object = None) -> Utterance:
    """An utterance with audio that was sent at 0 s, or waits."""
    made = Utterance(1, None, interruptible=True)  # type: ignore[arg-type]  # no turn
    made.runs = [run] if run else []  # type: ignore[list-item]  # only its identity counts
    made.generated = "one"
    made.add_audio(AgentAudio(bytes(2 * ms), 1000, "one"))
    if sent:
        made.sent(ms, 0.0, 0.0)
    else:
        made.waiting.put(bytes(2 * ms), 2 * ms)
    made.text_complete = made.audio_complete = True
    return made


def test_the_first_sound_is_due_when_it_was_sent_or_when_it_is_reported():
    """A player that reports gets a little time to do so; one that never did is not waited for."""
    one = utterance()
    assert has_started(one, 0.0, reports=False)
    assert not has_started(one, START_REPORT_S - 0.01, reports=True)
    assert has_started(one, START_REPORT_S, reports=True)
    one.report(0, 0.0, stalled=False)
    assert has_started(one, 0.0, reports=True)
    assert not has_started(utterance(sent=False), 99, reports=False)


def test_the_last_sound_is_due_when_all_was_sent_and_played():
    """By the clock at the end of the audio; a player that reports may say so, for a while."""
    one = utterance()
    assert not is_heard(one, 0.99)
    assert is_heard(one, 1.0)
    one.report(500, 0.5, stalled=False)
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
    assert looks_at_s(utterance(sent=False)) == ()
    assert looks_at_s(utterance()) == pytest.approx((0.0, START_REPORT_S, 1.0, 1.0 + DONE_REPORT_S))
    growing = utterance(300)
    growing.audio_complete = False
    assert looks_at_s(growing) == pytest.approx((0.0, START_REPORT_S))


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
