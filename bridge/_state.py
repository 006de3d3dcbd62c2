"""What a call is doing, in one word, told whenever it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from routes import Message

from .events import (
    AgentStartedSpeaking,
    AgentStoppedSpeaking,
    CallEnded,
    CallState,
    StateChanged,
    ToolCall,
    ToolResult,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)

if TYPE_CHECKING:
    from ._call import Call


class StateKeeper:
    """Follows a call's state.

    The states are exclusive; of several that hold, the first of ``closed, speaking, listening,
    tool, thinking, idle`` is the state.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self.state: CallState = "idle"
        self.number = 0
        self._user_speaks = False
        self._tools: list[Message] = []
        self._closed = False
        router = call.router
        router.add_sink(self._user, [UserStartedSpeaking, UserStoppedSpeaking])
        router.add_sink(self._tool, [ToolCall, ToolResult])
        router.add_sink(self._agent, [AgentStartedSpeaking, AgentStoppedSpeaking])
        router.add_sink(self._over, CallEnded)

    def _user(self, message: Message) -> None:
        self._user_speaks = isinstance(message.event, UserStartedSpeaking)
        self._call.touch_state()

    def _tool(self, message: Message) -> None:
        if isinstance(message.event, ToolCall):
            self._tools.append(message)
        else:
            calls = [call for call in self._tools if call.event.id == message.event.id]
            self._tools = [call for call in self._tools if call not in calls[:1]]
        self._call.touch_state()

    def _agent(self, _: Message) -> None:
        self._call.touch_state()

    def _over(self, _: Message) -> None:
        self._closed = True
        self._call.touch_state()

    def update(self) -> None:
        """Work out the state, and tell it if it has changed."""
        state = self._find()
        if state != self.state:
            self.state = state
            self.number += 1
            changed = StateChanged(state=state, number=self.number)
            self._call.router.publish_detached(changed, "call")

    def _find(self) -> CallState:
        speaking = self._call.speaking
        if self._closed:
            return "closed"
        if speaking.is_audible_now:
            return "speaking"
        if self._user_speaks:
            return "listening"
        self._tools = [call for call in self._tools if not call.is_stale]
        if self._tools and speaking.is_generating:
            return "tool"
        if speaking.is_generating or speaking.is_pending:
            return "thinking"
        return "idle"
