"""What a call is doing, in one word, told whenever it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
import trio

from routes import Message

from .control._states import IllegalStep, check_step
from .events import (
    AgentStartedSpeaking,
    AgentStoppedSpeaking,
    CallEnded,
    CallState,
    ListeningFailed,
    ListeningResumed,
    StateChanged,
    ToolCall,
    ToolResult,
    TranscriptionFailed,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)

if TYPE_CHECKING:
    from ._call import Call


log = structlog.get_logger()


class StateKeeper:
    """Follows a call's state.

    The states are exclusive; of several that hold, the first of ``closed, paused, pausing,
    speaking, waiting_permission, waiting_input, tool, thinking, stopping, listening, idle`` is
    the state.  An agent whose voice is held is still ``speaking``, as it is in mid-sentence; only
    the verb pause makes that ``paused``.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self.state: CallState = "idle"
        self.number = 0
        self.since_s = trio.current_time()
        self.illegal_steps = 0
        self.listening_error = ""
        """Why the caller cannot be heard; empty while it can."""
        self._user_speaks = False
        self._tools: list[Message] = []
        self._closed = False
        router = call.router
        about_user = [UserStartedSpeaking, UserStoppedSpeaking, TranscriptionFailed]
        router.add_sink(self._user, about_user)
        router.add_sink(self._tool, [ToolCall, ToolResult])
        router.add_sink(self._agent, [AgentStartedSpeaking, AgentStoppedSpeaking])
        router.add_sink(self._listening, [ListeningFailed, ListeningResumed])
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

    def _listening(self, message: Message) -> None:
        failed = isinstance(message.event, ListeningFailed)
        self.listening_error = message.event.error if failed else ""
        self._call.touch_state()

    def _over(self, _: Message) -> None:
        self._closed = True
        self._call.touch_state()

    def update(self) -> None:
        """Work out the state, and tell it if it has changed."""
        state = self.find()
        if state == self.state:
            return
        try:
            check_step(self.state, state, self._call.control.under_way or "")
        except IllegalStep as error:
            self.illegal_steps += 1
            self._call.router.caught(error)
            log.exception("illegal_step")
        self.state = state
        self.since_s = trio.current_time()
        self.number += 1
        changed = StateChanged(state=state, number=self.number)
        self._call.router.publish_detached(changed, "call")

    def find(self) -> CallState:
        """Work out the state as it is at this moment."""
        control, speaking = self._call.control, self._call.speaking
        if self._closed:
            return "closed"
        if control.is_paused:
            turn = control.target()
            begun = [work for work in control.works(turn) if work.started_at_s is not None]
            works = any(work.outcome is None for work in begun)
            return "pausing" if works and control.pause_tools == "finish" else "paused"
        if speaking.is_audible_now:
            return "speaking"
        if speaking.is_generating:
            return self._at_work()
        if speaking.is_pending:
            return "thinking"
        if control.under_way == "redirect":
            return "thinking"  # about what is next, once the step that was cut has unwound
        if control.is_stopping:
            return "stopping"
        return "listening" if self._user_speaks else "idle"

    def _at_work(self) -> CallState:
        turn = self._call.control.target()
        phase = "thinking" if turn is None else turn.phase
        if phase == "permission":
            return "waiting_permission"
        if phase == "input":
            return "waiting_input"
        self._tools = [call for call in self._tools if not call.is_stale]
        mine = [call for call in self._tools if call.run is None or not call.run.is_aside]
        return "tool" if phase == "tool" or mine else "thinking"
