"""The pauses between two tries of a caller."""

from itertools import islice

from bargein.bridge.client._reconnect import FIRST_PAUSE_S, LONGEST_PAUSE_S, pauses


def test_the_first_try_is_at_once_and_pauses_grow_to_a_bound():
    """No pause, then about a quarter of a second, doubling up to two seconds."""
    for _ in range(50):
        first, *rest = islice(pauses(), 12)
        assert first == 0
        for n, pause_s in enumerate(rest):
            most_s = min(FIRST_PAUSE_S * 2**n, LONGEST_PAUSE_S)
            assert most_s / 2 <= pause_s <= most_s


def test_two_callers_do_not_try_in_step():
    """There is some luck in each pause."""
    assert len({tuple(islice(pauses(), 4)) for _ in range(20)}) == 20
