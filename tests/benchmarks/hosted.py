"""Load 18: the cost of talking calls in an ASGI host, with their client on another core.

The baseline is the sum of the same calls without a socket and of a plain ASGI application under the
same uvicorn that receives and sends the same bytes: what crosses between the host's loop and the
agent's is all that comes on top.  See ``sockets.py`` for how the three are compared.
"""

from __future__ import annotations

import json
import statistics

from ._measure import Row, Size
from ._process import ROOT
from .sockets import Figure, measure

PYTHON = ROOT / "build" / "asgi" / "bin" / "python"
"""Of the environment with uvicorn, which ``make asgi`` makes."""

BOUND = 1.6
"""A message took 1.5 times what it takes in uvicorn alone when the way was chosen."""


def rows(size: Size) -> list[Row]:
    """Run the load."""
    calls = size.hosted_calls
    if not calls:
        return []
    if not PYTHON.exists():
        raise SystemExit("the load 'hosted' needs uvicorn: run `make build/asgi/installed` first")
    rounds: list[tuple[Figure, Figure, Figure]] = []
    for _ in range(size.socket_rounds):
        ours = measure(calls, size.socket_s, "hosted", python=str(PYTHON))
        texts = ours.texts or ["{}"]
        same_bytes = (json.dumps(texts[:50]), str(len(texts) / ours.seconds / calls))
        host = measure(calls, size.socket_s, "host", *same_bytes, python=str(PYTHON))
        alone = measure(calls, size.socket_s, "process", str(calls), python=str(PYTHON))
        rounds.append((ours, host, alone))
    return [
        Row(
            name=f"CPU of a call in an ASGI host, {calls} calls",
            unit="ms/s",
            bare=statistics.median(host.cpu_ms + alone.cpu_ms for _, host, alone in rounds),
            bare_p99=None,
            ours=statistics.median(ours.cpu_ms for ours, _, _ in rounds),
            ours_p99=None,
            value=statistics.median(
                ours.loops / (host.loops + alone.loops) for ours, host, alone in rounds
            ),
            bound=BOUND,
            note="bare: uvicorn alone and the calls alone; the ratio is at one speed of the CPU",
        )
    ]
