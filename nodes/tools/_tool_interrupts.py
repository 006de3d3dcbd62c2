"""The interrupts that a tool has had, and what its policy does with the next one.

Rules:
1. ``emergency_stop`` and ``shutdown`` act whatever the policy is.
2. A verb that is not stronger than an earlier one does nothing new; no interrupt extends the time
   that another one has left.
3. A detached job has already done what its policy says.
"""

from __future__ import annotations

import math
from typing import Literal

import trio

from bargein.bridge.control import STRENGTH, Verb

from ._interrupt_policy import Policy

FORCED: tuple[Verb, ...] = ("emergency_stop", "shutdown")
"""The verbs that allow no grace period."""

Effect = Literal["force", "cut", "wait", "move", "nothing"]
"""What an interrupt does: cancel without grace, cancel, leave some time, move to the background."""


class Interrupts:
    """The interrupts that a running tool has had.

    Attributes:
        verb: The strongest verb so far; ``None`` if nothing asked it to stop.
        stop_at_s: When it will be cancelled, in seconds of trio's clock; infinity if it will not.
        started_at_s: When it began, in seconds of trio's clock.
    """

    def __init__(self, policy: Policy, started_at_s: float) -> None:
        self._policy = policy
        self.started_at_s = started_at_s
        self.verb: Verb | None = None
        self.stop_at_s = math.inf

    def effect_of(self, verb: Verb, *, is_job: bool) -> Effect:
        """Return what a verb would do now.

        Args:
            verb: The verb; neither ``background`` nor ``resume``, which stop nothing.
            is_job: Whether the tool runs in the background.
        """
        if self.verb is not None and STRENGTH[verb] <= STRENGTH[self.verb]:
            return "nothing"
        if verb in FORCED:
            return "force"
        match self._policy.kind:
            case "cancel":
                return "cut"
            case "detach":
                return "nothing" if is_job else "move"
            case "finish" | "shield":
                return "wait" if self._would_stop_s() > trio.current_time() else "cut"

    def apply(self, verb: Verb, *, is_job: bool) -> Effect:
        """Record a verb, and return what it does; see ``effect_of``."""
        effect = self.effect_of(verb, is_job=is_job)
        if effect != "nothing":
            self.verb = verb
        if effect == "wait":
            self.stop_at_s = self._would_stop_s()
        return effect

    def start_clock(self, at_s: float) -> None:
        """Count the tool's time from now on.

        Args:
            at_s: Now, in seconds of trio's clock.
        """
        self.started_at_s = at_s

    def note(self, verb: Verb) -> None:
        """Record a verb that cancels the tool whatever its policy says."""
        self.verb = verb

    def may_move(self) -> bool:
        """Whether nothing stronger than ``background`` has asked it to stop."""
        return self.verb is None or STRENGTH[self.verb] < STRENGTH["background"]

    def forget(self) -> None:
        """Start over, as a job."""
        self.verb = None
        self.stop_at_s = math.inf

    def _would_stop_s(self) -> float:
        shielded = self._policy.kind == "shield"
        since_s = self.started_at_s if shielded else trio.current_time()
        return min(self.stop_at_s, since_s + self._policy.limit_s)

    def consequence(self, verb: Verb, *, is_job: bool, is_cut: bool, commit_until_s: float) -> str:
        """Return a few words that say what a verb would do now.

        Args:
            verb: As in ``effect_of``.
            is_job: As in ``effect_of``.
            is_cut: Whether the tool was cancelled already.
            commit_until_s: The deadline of its commit section; ``-inf`` outside.
        """
        effect = self.effect_of(verb, is_job=is_job)
        if effect == "move" or (is_job and effect == "nothing" and self.verb is None):
            return "continues in the background"
        now_s = trio.current_time()
        stops_s = now_s if is_cut or effect in ("force", "cut") else self.stop_at_s
        if effect == "wait":
            stops_s = self._would_stop_s()
        if stops_s > now_s:
            return f"may finish, at most {max(stops_s, commit_until_s) - now_s:.3g} s"
        if commit_until_s > now_s:
            return f"completes its effect, at most {commit_until_s - now_s:.3g} s"
        return "is stopped"
