"""Back-off and the Retry-After header."""

from __future__ import annotations

import pytest

from bargein.llm import ChatModelError
from bargein.nodes.llm._backoff import Backoff, retry_after_s

NOW = "Sat, 21 Nov 2026 10:00:00 GMT"


def failure(**fields) -> ChatModelError:
    """An error after which a request may be sent again."""
    return ChatModelError("busy", **{"retryable": True, **fields})


def test_waits_double_within_their_jitter() -> None:
    """Each wait is between a half and the whole of twice the one before, up to the longest."""
    for number, share in ((0.0, 0.5), (1.0, 1.0)):
        backoff = Backoff(6, 1.0, 5.0, lambda number=number: number)
        waits = [backoff.wait_s(failure(), attempt) for attempt in range(1, 7)]
        assert waits == [1 * share, 2 * share, 4 * share, 5 * share, 5 * share, None]


def test_gives_up() -> None:
    """Lasting errors, the last attempt, and a server that wants too long are raised."""
    backoff = Backoff(3, 1.0, 5.0, lambda: 1.0)
    assert backoff.wait_s(failure(retryable=False), 1) is None
    assert backoff.wait_s(failure(), 3) is None
    assert backoff.wait_s(failure(retry_after_s=5.1), 1) is None
    assert backoff.wait_s(failure(retry_after_s=5.0), 1) == 5.0
    assert backoff.wait_s(failure(retry_after_s=0.0), 1) == 1.0


def test_many_attempts_do_not_overflow() -> None:
    """A huge number of attempts waits the longest time, and raises no OverflowError."""
    assert Backoff(10**9, 1.0, 5.0, lambda: 1.0).wait_s(failure(), 10**8) == 5.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "soon", "date": NOW}, None),
        ({"retry-after": NOW}, None),
        ({"retry-after": "Sat, 21 Nov 2026 10:00:30 GMT", "date": NOW}, 30.0),
        ({"retry-after": "Sat, 21 Nov 2026 09:00:00 GMT", "date": NOW}, 0.0),
    ],
)
def test_retry_after(headers, seconds) -> None:
    """Seconds and dates are read, dates by the server's own clock; all else is nothing."""
    assert retry_after_s(headers) == seconds
