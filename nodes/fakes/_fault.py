"""The fault that a fake of a vendor's service plays, and where it strikes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FaultStage = Literal["connect", "voice", "words", "first", "middle", "last", "after"]
"""Where a fault strikes: before the connection is open; at the first message of a result, at one in
its middle, or at its last; or right after the last ("drop" and "close" only).  A speech-to-speech
model has two more places before its answer: when it reports that the caller's voice began, and when
it reports the caller's words."""

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
"""What the service does wrong:

- ``stall``: sends nothing more, but keeps the connection open and answers pings;
- ``drop``: breaks the connection;
- ``close``: closes the connection in good order;
- ``refuse``: answers the handshake with an HTTP status;
- ``error``: sends its error message in place of the message;
- ``garbage``: sends messages that nobody can parse before the message;
- ``duplicate``: sends the message twice;
- ``reorder``: sends the message after the next one;
- ``slow``: sends the message a second late;
- ``late``: ignores a cancel, and continues what was cancelled;
- ``backwards``: sends times that run backwards;
- ``empty``: returns a result without words, or without audio;
- ``flood``: sends the message again and again, 48 MiB of it;
- ``deaf``: reads nothing.
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a fake."""

    kind: FaultKind
    at: FaultStage = "middle"
    """Where it strikes; ``refuse`` strikes only at "connect", and ``late``, ``empty``, ``flood``
    and ``deaf`` have no place."""
    times: int | None = 1
    """How often it strikes ("stall", "drop", "close", "refuse", "error"); ``None``: every time."""
    status: int = 503
    """The HTTP status of ``refuse``."""

    def __str__(self) -> str:
        often = "each time" if self.times is None else f"{self.times} x"
        return f"{self.kind} at {self.at}, {often}"
