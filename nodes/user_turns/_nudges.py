"""Decides when a silence is announced, so that an agent may ask, or say that it takes a while.

Like the core it only decides: times and views in, events out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bargein.bridge.events import AgentIdle, TurnDecided, UserAway
from bargein.routes import Event

from ._settings import TurnSettings
from ._sound_verdict import CLOSE_S, AgentView

AT_WORK = ("thinking", "tool")
"""The states in which the caller waits for the agent; in the others the agent waits too."""


@dataclass(slots=True)
class _Silence:
    """A silence that is announced each time it has lasted a further `after_s`."""

    since_s: float | None = None
    """When it began; None while there is none."""
    announced: int = 0
    """How often it was announced."""
    count: int = 0
    """How often silences were announced in a row."""
    ask_by_s: float = math.inf
    """When it is to be announced next; infinite for never."""

    def follow(self, now_s: float, is_silent: bool, after_s: float | None, times: int) -> bool:
        """Update whether the silence lasts; return whether to announce it now."""
        self.ask_by_s = math.inf
        if not is_silent:
            self.since_s, self.announced = None, 0
            return False
        if self.since_s is None:
            self.since_s = now_s
        if after_s is None:
            return False
        due = now_s >= self._due_s(after_s) - CLOSE_S and self.count < times
        if due:
            self.announced += 1
            self.count += 1
        if self.count < times:
            # A silence that was due several times without a step is announced once.
            self.ask_by_s = max(self._due_s(after_s), now_s + after_s if due else now_s)
        return due

    def _due_s(self, after_s: float) -> float:
        return (self.since_s or 0.0) + after_s * (self.announced + 1)

    def lasts_s(self, now_s: float) -> float:
        """Return how long it has lasted."""
        return 0.0 if self.since_s is None else now_s - self.since_s


class Nudges:
    """Follows the silences of one call."""

    def __init__(self) -> None:
        self._user = _Silence()
        self._agent = _Silence()

    @property
    def ask_by_s(self) -> float:
        """The latest time of the next step; infinity for never."""
        return min(self._user.ask_by_s, self._agent.ask_by_s)

    def user_is_there(self) -> None:
        """Record that the caller said or did something."""
        self._user = _Silence()

    def due(
        self, now_s: float, view: AgentView, settings: TurnSettings, *, user_speaks: bool
    ) -> list[Event]:
        """Return the nudges that are due, each after its decision."""
        if user_speaks:
            self.user_is_there()
        is_idle = view.is_idle
        if is_idle:
            self._agent.count = 0
        events: list[Event] = []
        after_s, times = settings.user_away_after_s, settings.user_away_times
        nobody = is_idle and not user_speaks and view.state == "idle"
        if self._user.follow(now_s, nobody, after_s, times):
            lasts_s, count = self._user.lasts_s(now_s), self._user.count
            events.append(_decided("user_away", lasts_s, count, "user_away_after_s", after_s))
            events.append(UserAway(away_s=lasts_s, count=count))
        after_s, times = settings.agent_idle_after_s, settings.agent_idle_times
        works = not view.is_audible and view.state in AT_WORK
        if self._agent.follow(now_s, works, after_s, times):
            lasts_s, count = self._agent.lasts_s(now_s), self._agent.count
            events.append(_decided("agent_idle", lasts_s, count, "agent_idle_after_s", after_s))
            events.append(AgentIdle(idle_s=lasts_s, count=count))
        return events


def _decided(
    decision: str, lasts_s: float, count: int, rule: str, after_s: float | None
) -> TurnDecided:
    values = {"lasts_s": round(lasts_s, 3), rule: after_s or 0.0, "count": count}
    return TurnDecided(about="nudge", decision=decision, rule=rule, values=dict(values))
