"""The connections that have not said yet which call they resume.

Rule 1. Each has `FIRST_MESSAGE_S` seconds for its first message.
Rule 2. The newest always gets a place, and the oldest loses its own: a client sends its first
message at once, so a connection that has waited for long is not that of a lost caller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import final

import trio

from ..wires._hosted_call import RefusalCode
from ..wires._limits import Limits
from ..wires._metrics import Metrics
from ..wires._wire import Session

FIRST_MESSAGE_S = 2.0
"""How many seconds the first message may take: clients send it with the first packet after the
handshake, and a lost packet is sent again within a second (RFC 6298, section 2)."""


@final
@dataclass(frozen=True)
class Place:
    """One of these connections, for its wire; see ``ResumePlace``."""

    limits: Limits
    metrics: Metrics
    wait: Callable[[], AbstractContextManager[None]]
    session_of: Callable[[str], Session | None]

    def count_refusal(self, code: RefusalCode) -> None:
        """Count that the connection is refused."""
        self.metrics.rejected[code] += 1


@final
class ResumeConnections:
    """The places of connections that have not said yet which call they resume."""

    def __init__(self, most: int, most_of_address: int | None, over: Counter[str]) -> None:
        """Start empty.

        Args:
            most: Connections at the same time.
            most_of_address: Of these, how many may have one address; ``None`` for no limit.
            over: Counts those that lose their places, by budget.
        """
        self._most = most
        self._most_of_address = most_of_address
        self._over = over
        self._waiting: dict[trio.CancelScope, str | None] = {}

    @contextmanager
    def wait(self, address: str | None) -> Iterator[None]:
        """Have a place while the block runs, which ends when that is lost or the time is over.

        Args:
            address: Whose connection it is; ``None`` for one that is not counted by address.
        """
        same = [scope for scope, other in self._waiting.items() if other == address]
        if address is not None and self._most_of_address is not None:
            self._displace(same, self._most_of_address)
        self._displace(list(self._waiting), self._most)
        with trio.move_on_after(FIRST_MESSAGE_S) as scope:
            self._waiting[scope] = address
            try:
                yield
            finally:
                self._waiting.pop(scope, None)

    def _displace(self, waiting: list[trio.CancelScope], most: int) -> None:
        if len(waiting) >= most:
            self._over["resumes"] += 1
            del self._waiting[waiting[0]]
            waiting[0].cancel(reason="a newer connection wants to resume a call")
