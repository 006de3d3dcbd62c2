"""What a fake of a vendor's service does wrong, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Stage = Literal["connect", "voice", "words", "first", "middle", "last", "after"]
"""Where in the service's work: before the connection is open, with the first message of a result,
one in its middle, or the one that ends it, or right behind that ("drop" and "close" only).  A model
that hears and speaks has two more, ahead of its answer: when it tells that the caller's voice
began, and with the caller's words."""

FaultKind = Literal[
    "stall",
    "drop",
    "close",
    "refuse",
    "error",
    "garbage",
    "duplicate",
    "reorder",
    "slow",
    "late",
    "backwards",
    "empty",
    "flood",
    "deaf",
]
"""What goes wrong:

- ``stall``: nothing more is sent, but the connection stays, and its pings are answered;
- ``drop``: the connection is torn;
- ``close``: the connection is closed in good order;
- ``refuse``: the connection is answered with an HTTP status;
- ``error``: an error in the service's own words comes in place of the message;
- ``garbage``: messages that nobody can read come before it;
- ``duplicate``: it is sent twice;
- ``reorder``: it comes behind the next message;
- ``slow``: it comes a second late;
- ``late``: a cancel is ignored, and what was cancelled goes on;
- ``backwards``: its times run backwards;
- ``empty``: the result has no words, or no audio;
- ``flood``: the message is sent again and again, far more than anyone asked for;
- ``deaf``: nothing that is sent there is read.
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that a fake does wrong."""

    kind: FaultKind
    at: Stage = "middle"
    """Where it happens.  ``refuse`` happens at "connect" only; ``late``, ``empty``, ``flood`` and
    ``deaf`` have no place."""
    times: int | None = 1
    """How often it happens ("stall", "drop", "close", "refuse", "error"); None: each time."""
    status: int = 503
    """What ``refuse`` answers."""

    def __str__(self) -> str:
        often = "each time" if self.times is None else f"{self.times} x"
        return f"{self.kind} at {self.at}, {often}"
