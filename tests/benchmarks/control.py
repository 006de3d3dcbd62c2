"""Load 9: the cost of the interruption contract.

It measures an answer without tools against the bare stream of the same model; the verb ``cancel``,
to its receipt and until everything has settled, against a cancel scope of bare trio; a record of
the history against a commit in bare SQLite. The bounds are measurements on two busy cores (load
average 2 to 7, Python 3.11), with some room.
"""

from __future__ import annotations

from . import _answer, _cancel, records
from ._measure import Row, Size
from ._process import logs_to_nowhere

ANSWER_BOUND = 8.0
"""An answer took 2.6 to 6.6 times as long as the bare stream. Most of it is the call, not the loop:
each piece is recorded, and published twice, as generated and as read."""

PLAIN_BOUND = 2.0
"""The loop and the node took 1.1 to 1.9 times as long as a plain function in their place."""

CANCEL_BOUNDS = {"receipt": 50.0, "over": 40.0, "settled": 40.0}
"""They took 20 to 28, 8 to 14 and 11 to 24 times as long, with 1 call and with 50. That is a median
of 0.6 to 0.9 ms to the receipt and 1.5 to 9 ms until everything has settled. The 99th percentile is
shown but not judged: it depends on the load of the machine."""

RECORD_BOUND = 2.0
"""A record took 1.11 to 1.14 times as long as the commit alone."""


def rows(size: Size) -> list[Row]:
    """Run the load."""
    with logs_to_nowhere():
        return [
            *_answer.rows(size, bound=ANSWER_BOUND, plain_bound=PLAIN_BOUND),
            *_cancel.rows(1, size, CANCEL_BOUNDS),
            *_cancel.rows(50, size, CANCEL_BOUNDS),
            records.against_sqlite(size, bound=RECORD_BOUND),
        ]
