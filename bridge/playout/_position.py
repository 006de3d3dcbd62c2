"""How much of an utterance was played: the player's reports, extrapolated by the clock.

Rules:
1. A position is the last report, extrapolated by the clock; never more than was sent.
2. The clock carries it at most ``UNREPORTED_MS`` past the last report: a player whose sound stands
   still reports nothing, and what nobody can hear is not heard.  Only a player that never reports
   positions goes by the clock alone.
3. It never goes back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

UNREPORTED_MS = 500.0
"""How many milliseconds of unreported audio are normal: a player reports every 0.25 s.  Beyond them
its report is overdue, and its position stands until the next one."""

REPORT_TRUSTED_S = 0.25
"""For how many seconds a player's last report counts exactly; after that the clock extrapolates it.
Players report every 0.25 s, and report at once what the clock cannot foresee."""


_QUIET_SLACK_S = 0.002
"""By how many seconds the known end of a word is too early, at most."""


@dataclass(slots=True, eq=False)
class PlayedPosition:
    """Where the player is in one utterance.  Times are in seconds of trio's clock."""

    sent_ms: float = 0.0
    """How much audio was sent to the transport so far."""
    started: bool = False
    """Whether its first sound has reached the caller."""
    cut_at_ms: float | None = None
    """Where it was cut; ``None`` if it was not."""
    _anchor_s: float | None = None
    _anchor_ms: float = 0.0
    _reported_s: float | None = None
    _reported_ms: float = 0.0
    _stalled: bool = False
    _most_ms: float = math.inf
    """How far the clock may carry it without another report."""

    def sent(self, duration_ms: float, now_s: float, plays_at_s: float) -> None:
        """Record audio that was sent to the transport.

        Args:
            duration_ms: How much.
            now_s: The time.
            plays_at_s: When the player gets to it, if it has played everything sent before.
        """
        flows = self._anchor_s is not None and not self._stalled and plays_at_s > now_s
        if not flows:
            self._start_flow(now_s, plays_at_s)
        self.sent_ms += duration_ms

    def _start_flow(self, now_s: float, plays_at_s: float) -> None:
        """Record audio for a player that had run dry or was held."""
        if self._anchor_s is None or self.position_ms(now_s) >= self.sent_ms:
            self._anchor_s, self._anchor_ms = plays_at_s, self.sent_ms
        elif self._stalled:
            self._anchor_s = now_s
        self._stalled = False

    def stand(self, now_s: float) -> None:
        """Record that the player is held at the sample being heard."""
        if self._anchor_s is not None:
            self._anchor_s, self._anchor_ms = now_s, self.position_ms(now_s)
            self._stalled = True

    def resume(self, now_s: float) -> None:
        """Record that the player continues where it was held."""
        if self._anchor_s is not None:
            self._anchor_s = now_s
            self._stalled = False

    def start(self) -> None:
        """Record that its first sound reached the caller."""
        self.started = True

    def cut(self, position_ms: float) -> None:
        """Let it stand at the position of a cut."""
        self.cut_at_ms = position_ms

    def restart(self, from_ms: float, now_s: float) -> None:
        """Record that its audio is sent again from a position on."""
        self.sent_ms = from_ms
        self._anchor_s, self._anchor_ms = (now_s if self.started else None), from_ms
        self._stalled = True
        self._reported_s = now_s if self.is_reported and self.started else None
        self._reported_ms = from_ms
        if self._most_ms < math.inf:
            self.expect_reports()

    def begins_at(self, plays_at_s: float) -> None:
        """Shift its start: the audio ahead of it takes more or less time than expected."""
        if not self.started and self._anchor_s is not None:
            self._anchor_s = plays_at_s

    def report(self, played_ms: float, now_s: float, *, stalled: bool) -> None:
        """Record a position reported by the player.

        Args:
            played_ms: How much of this utterance was played.
            now_s: The time.
            stalled: Whether the player has nothing left to play for now.
        """
        played_ms = self.possible_ms(played_ms)
        self._anchor_s, self._anchor_ms = now_s, played_ms
        self._reported_s, self._reported_ms = now_s, played_ms
        self._stalled = stalled
        if self._most_ms < math.inf:
            self.expect_reports()

    def expect_reports(self, carried_ms: float = UNREPORTED_MS) -> None:
        """Record that its player reports positions, so that the clock alone proves little.

        Args:
            carried_ms: How far the clock carries the last report, in milliseconds.
        """
        self._most_ms = self._reported_ms + carried_ms

    def confirm(self, now_s: float) -> None:
        """Record that its player is alive, though it reports only what cannot be."""
        if self._most_ms < math.inf:
            self._most_ms = max(self._most_ms, self.position_ms(now_s) + UNREPORTED_MS)

    @property
    def owes_report(self) -> bool:
        """Whether its end is not reached without another report."""
        return self.sent_ms > self._most_ms

    @property
    def may_start_unreported(self) -> bool:
        """Whether it may count as started by the clock."""
        return self._most_ms > 0

    def stands(self, now_s: float) -> bool:
        """Whether its position stands because a report is overdue."""
        if self._anchor_s is None or self._stalled or not self.owes_report:
            return False
        return self._anchor_ms + (now_s - self._anchor_s) * 1000 >= self._most_ms

    def possible_ms(self, played_ms: float) -> float:
        """Return a reported position as far as it is possible: no step back, nor past the end."""
        return min(max(self._reported_ms, played_ms), self.sent_ms)

    @property
    def is_reported(self) -> bool:
        """Whether its player reports positions."""
        return self._reported_s is not None

    def unreported_since_s(self) -> float:
        """Return since when its player has owed a report; infinite if it owes none."""
        known_ms = self._reported_ms if self.is_reported else 0.0
        if self._anchor_s is None or self._stalled or self.sent_ms - known_ms < UNREPORTED_MS:
            return math.inf
        return self._anchor_s

    def position_ms(self, now_s: float) -> float:
        """Return the best estimate of how much of its audio is played by now."""
        if self.cut_at_ms is not None:
            return self.cut_at_ms
        if self._anchor_s is None:
            return 0.0
        if self._stalled:
            return self._anchor_ms
        played_ms = self._anchor_ms + max(0.0, now_s - self._anchor_s) * 1000
        return min(played_ms, self.sent_ms, max(self._most_ms, self._anchor_ms))

    @property
    def played_ms(self) -> float:
        """How much was played according to the last report, or at its start."""
        return self._anchor_ms

    @property
    def starts_at_s(self) -> float:
        """When its first sound plays; infinite before any was sent."""
        return math.inf if self._anchor_s is None else self._anchor_s

    @property
    def ends_at_s(self) -> float:
        """When everything sent of it will have been played."""
        if self._anchor_s is None:
            return math.inf
        return self._anchor_s + (self.sent_ms - self._anchor_ms) / 1000

    def reached_at_s(self, position_ms: float) -> float:
        """Return when a position is reached at the earliest, while the sound flows; 0 if it does
        not, or has not begun."""
        if self._anchor_s is None or self._stalled:
            return 0.0
        at_s = self._anchor_s + (position_ms - self._anchor_ms) / 1000 + _QUIET_SLACK_S
        return at_s if self._reported_s is None else max(at_s, self._reported_s + REPORT_TRUSTED_S)

    def sure_position_ms(self, now_s: float) -> float:
        """Return how much was certainly played: the last report, while it is fresh."""
        if self._reported_s is not None and now_s - self._reported_s <= REPORT_TRUSTED_S:
            return self._reported_ms
        return self.position_ms(now_s)

    def known_position_ms(self, now_s: float, *, lost: bool) -> float:
        """Return how much was played of the audio that its player no longer has.

        Args:
            now_s: The time.
            lost: Whether the connection lost it: then only the player's last report counts.
        """
        if not self.started:
            return 0.0
        return self._reported_ms if lost and self.is_reported else self.sure_position_ms(now_s)
