"""Signed requests that have come already: a signature with a time is good once, and for minutes."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from typing import final

MAX_AGE_S = 300.0
"""How old a signature may be, in seconds, and how far ahead its clock; Telnyx' own libraries allow
as much."""

MAX_KEPT = 20_000
"""How many requests are kept: 66 a second for as long as each is good."""


@final
class SignedTimes:
    """The signed requests of the last minutes."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        """Start without one."""
        self._seen: OrderedDict[bytes, float] = OrderedDict()

    def mistake(self, signed_at_s: float, signed: bytes) -> str:
        """Return what is wrong with the time of a rightly signed request; empty for nothing.

        Args:
            signed_at_s: When it was signed, in seconds since 1970.
            signed: What was signed; the same again is a replay.
        """
        now_s = time.time()
        if not abs(now_s - signed_at_s) <= MAX_AGE_S:
            return (
                f"its signature is {now_s - signed_at_s:.0f} s old, and good for {MAX_AGE_S:.0f}: "
                "is the clock of this machine right?"
            )
        while self._seen and next(iter(self._seen.values())) < now_s - 2 * MAX_AGE_S:
            self._seen.popitem(last=False)
        digest = hashlib.sha256(signed).digest()
        if digest in self._seen:
            return "its signature has come before"
        self._seen[digest] = now_s
        if len(self._seen) > MAX_KEPT:
            self._seen.popitem(last=False)
        return ""
