"""The agent's side of a call, as turn taking sees it when it decides."""

# A live view has properties where a given one has fields. Since neither is ever assigned, one can
# replace the other. Pyright reads its settings only from a comment that begins with its name.
# pyright: reportIncompatibleVariableOverride=false, reportIncompatibleMethodOverride=false

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bargein.bridge.events import UserStartedSpeaking

if TYPE_CHECKING:
    from bargein.bridge import AgentStatus


@dataclass(frozen=True, slots=True)
class AgentView:
    """The agent's side of a call, at one moment."""

    is_audible: bool = False
    """Whether the caller hears it, or would if it were not held."""
    is_at_work: bool = False
    """Whether it is working on an answer, or one waits to be heard."""
    may_be_cut: bool = True
    """Whether the caller's voice may interrupt the current speech."""
    saying: str = ""
    """What it says around now."""
    first_sound_s: float = math.inf
    """When its first audio of the call was heard, by trio's clock; infinity before."""
    first_message: bool = False
    """Whether it is still saying its first speech of the call."""
    state: str = "idle"
    """The state of the call."""
    agent: str = ""
    """The name of the agent that has the floor; empty for none."""
    route: str = ""
    """The chain whose run speaks or works, as it was written; empty for none."""

    @property
    def awaits_caller(self) -> bool:
        """Whether it has asked a question and cannot go on before the caller answers."""
        return self.state in ("waiting_permission", "waiting_input") and not self.is_audible

    @property
    def is_idle(self) -> bool:
        """Whether it neither says nor does anything."""
        return not (self.is_audible or self.is_at_work)


class LiveView(AgentView):
    """The agent's side of a call; each attribute is computed when it is first read.

    A new one is made for each fact, and read only within that step.
    """

    _agent: AgentStatus
    _is_first: bool

    def __init__(self, agent: AgentStatus, first_sound_s: float, *, is_first: bool) -> None:
        """Keep what the attributes are computed from.

        Args:
            agent: The status of the agent in its call.
            first_sound_s: When its first audio of the call was heard; infinity before.
            is_first: Whether it has not finished its first speech of the call.
        """
        object.__setattr__(self, "first_sound_s", first_sound_s)
        self.__dict__["_agent"] = agent
        self.__dict__["_is_first"] = is_first

    @cached_property
    def is_audible(self) -> bool:
        """Whether the caller hears it, or would if it were not held."""
        return self._agent.is_audible

    @cached_property
    def is_at_work(self) -> bool:
        """Whether it is working on an answer, or one waits to be heard."""
        return self._agent.is_at_work

    @cached_property
    def is_idle(self) -> bool:
        """Whether it neither says nor does anything."""
        return not (self.is_audible or self.is_at_work)

    @cached_property
    def first_message(self) -> bool:
        """Whether it is still saying its first speech of the call."""
        return self._is_first and not self.is_idle

    @cached_property
    def may_be_cut(self) -> bool:
        """Whether the caller's voice may interrupt the current speech."""
        return not self.is_audible or self._agent.may_be_cut_by(UserStartedSpeaking)

    @cached_property
    def saying(self) -> str:
        """What it says around now."""
        return "" if self.is_idle else self._agent.saying

    @cached_property
    def state(self) -> str:
        """The state of the call."""
        return self._agent.state

    @cached_property
    def agent(self) -> str:
        """The name of the agent that has the floor; empty for none."""
        return self._agent.name

    @cached_property
    def route(self) -> str:
        """The chain whose run speaks or works, as it was written; empty for none."""
        return "" if self.is_idle else self._agent.route
