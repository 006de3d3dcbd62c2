"""What turn taking knows of the agent at the moment in which it decides."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AgentView:
    """The agent's side of a call, at one moment."""

    is_audible: bool = False
    """Whether the caller hears it, or would if it were not held."""
    is_at_work: bool = False
    """Whether it is working on an answer, or one waits to be heard."""
    may_be_cut: bool = True
    """Whether what is heard may be cut by the caller's voice."""
    saying: str = ""
    """What it says around now."""
    first_sound_s: float = math.inf
    """When its first sound of the call was heard, on trio's clock; infinite before."""
    first_message: bool = False
    """Whether the first thing it says in this call is not over yet."""
    state: str = "idle"
    """The state of the call."""
    agent: str = ""
    """The name of the agent that has the floor; empty for none."""
    route: str = ""
    """The chain whose run speaks or works, as it was written; empty for none."""

    @property
    def awaits_caller(self) -> bool:
        """Whether it has asked something and can do nothing before the caller answers."""
        return self.state in ("waiting_permission", "waiting_input") and not self.is_audible

    @property
    def is_idle(self) -> bool:
        """Whether it neither says nor does anything."""
        return not (self.is_audible or self.is_at_work)
