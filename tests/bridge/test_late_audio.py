"""A line whose audio comes late: how much the player gathers before it plays."""

from __future__ import annotations

import pytest

from bargein.bridge.audio.loudspeaker import Loudspeaker

RATE = 1000


def starts_after_ms(speaker: Loudspeaker, utterance: int, at_s: float) -> float:
    """Feed 100 ms that arrive now; return how long they wait."""
    speaker.feed(utterance, bytes(2 * RATE // 10), at_s)
    return round(1000 * (speaker.heard(at_s + 1)[-1].at_s - at_s))


def test_a_buffer_grows_after_two_underruns_and_shrinks_again():
    """Two within ten seconds make it 300 ms, for what starts next, too; calm halves it."""
    speaker = Loudspeaker(RATE)
    assert starts_after_ms(speaker, 1, 0.0) == 60
    assert starts_after_ms(speaker, 1, 0.5) == 60
    assert starts_after_ms(speaker, 1, 1.0) == 300
    assert starts_after_ms(speaker, 2, 9.0) == 300
    assert starts_after_ms(speaker, 3, 32.0) == 150
    assert starts_after_ms(speaker, 4, 62.0) == 75
    assert starts_after_ms(speaker, 5, 92.0) == 60


@pytest.mark.parametrize("gap_s", [1.3, 11.0])
def test_gaps_that_are_no_fault_of_the_line_grow_nothing(gap_s):
    """A voice that thinks for longer, and underruns far apart, leave the buffer short."""
    speaker = Loudspeaker(RATE)
    for n in range(5):
        assert starts_after_ms(speaker, 1, n * gap_s) == 60


def test_the_end_of_an_utterance_is_no_underrun():
    """What starts anew after a silence has not run dry."""
    speaker = Loudspeaker(RATE)
    for n in range(6):
        assert starts_after_ms(speaker, n, n / 2) == 60


@pytest.mark.parametrize(("buffer_s", "underruns"), [(0.06, 2), (0.3, 0)])
def test_a_grown_buffer_bridges_the_same_gaps(buffer_s, underruns):
    """Audio that is a quarter of a second late in each answer breaks off in the first two only."""
    speaker = Loudspeaker(RATE, buffer_s=buffer_s)
    for n in range(10):
        for at_s in (n, n + 0.35):
            speaker.reports(at_s)
            speaker.feed(n, bytes(2 * RATE // 10), at_s)
        speaker.end(n)
    speaker.reports(12)
    assert speaker.underruns == underruns
