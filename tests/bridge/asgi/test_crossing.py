"""What one event loop asks of another."""

import sys
from functools import partial

from structlog.testing import capture_logs

from bargein.bridge.asgi._agent_thread import Crossing


def test_what_one_connection_asks_and_raises_keeps_no_other_back():
    """A batch that crosses to the other event loop is done whole; what raises in it is logged."""
    wakes, done = [], []
    crossing = Crossing(wakes.append)
    for call in (partial(done.append, 1), partial(int, "x"), sys.exit, partial(done.append, 2)):
        crossing.post(call)
    [wake] = wakes
    with capture_logs() as logs:
        wake()
    assert done == [1, 2]
    assert [line["event"] for line in logs] == ["crossing_failed"] * 2
