"""Load 9: what the contract of interruption costs.

Three things: a turn without tools against the bare stream of the same model; the verb ``cancel``,
to its receipt and until all has settled, against a cancel scope of bare trio; and a record of the
history against a commit in bare SQLite.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from bridge._logs import configure_logs

from . import _answer, _cancel, records
from ._measure import Row, Size

ANSWER_BOUND = 8.0
PLAIN_BOUND = 2.0
CANCEL_BOUNDS = {"receipt": 50.0, "over": 40.0, "settled": 40.0}
RECORD_BOUND = 2.0


@contextmanager
def _logs() -> Iterator[None]:
    """Write logs as a server does, to nowhere."""
    before = structlog.get_config()
    with Path(os.devnull).open("w") as out:
        configure_logs(out=out)
        try:
            yield
        finally:
            structlog.configure(**before)


def rows(size: Size) -> list[Row]:
    """Run the load."""
    with _logs():
        return [
            *_answer.rows(size, bound=ANSWER_BOUND, plain_bound=PLAIN_BOUND),
            *_cancel.rows(1, size, CANCEL_BOUNDS),
            *_cancel.rows(50, size, CANCEL_BOUNDS),
            records.against_sqlite(size, bound=RECORD_BOUND),
        ]
