"""The state of a call, in one word, published whenever it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from bargein.routes import Message
from bargein.routes.logs import get_logger

from .._verbs import AnswerPhase, Verb
from ..events import (
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
from ._state_table import IllegalStepError, check_step, find, illegal_steps, refusal

if TYPE_CHECKING:
    from ..answers._answer import Answer
    from ..answers._call_answers import CallAnswers
    from ..context._call_context import CallContext
    from ._tool_permissions import Permissions
    from ._verb_execution import Control


log = get_logger()


class StateKeeper:
    """Tracks a call's state, and publishes each change."""

    __slots__ = (
        "_permissions", "_tools", "answers", "context", "control", "is_closed", "listening_error",
        "number", "since_s", "state", "user_speaks",
    )  # fmt: skip

    context: CallContext
    answers: CallAnswers
    control: Control

    def __init__(
        self,
        context: CallContext,
        answers: CallAnswers,
        control: Control,
        permissions: Permissions,
    ) -> None:
        """Start in the state ``idle``."""
        self._permissions = permissions
        self.context = context
        self.answers = answers
        self.control = control
        self.state: CallState = "idle"
        self.number = 0
        self.since_s = trio.current_time()
        self.listening_error = ""
        """Why the caller cannot be heard; empty if it can."""
        self.user_speaks: bool = False
        self.is_closed: bool = False
        self._tools: list[Message] = []
        context.work_out_by(self.update)
        router = context.router
        about_user = [UserStartedSpeaking, UserStoppedSpeaking, TranscriptionFailed]
        router.add_sink(self._user, about_user)
        router.add_sink(self._tool, [ToolCall, ToolResult])
        router.add_sink(self._agent, [AgentStartedSpeaking, AgentStoppedSpeaking])
        router.add_sink(self._listening, [ListeningFailed, ListeningResumed])
        router.add_sink(self._over, CallEnded)
        router.async_sinks.observe(context.touch_state)

    def _user(self, message: Message) -> None:
        self.user_speaks = isinstance(message.event, UserStartedSpeaking)
        self.context.touch_state()

    def _tool(self, message: Message) -> None:
        if isinstance(message.event, ToolCall):
            self._tools.append(message)
        else:
            for call in self._tools:
                if call.event.id == message.event.id:
                    self._tools.remove(call)
                    break
        self.context.touch_state()

    def _agent(self, _: Message) -> None:
        self.context.touch_state()

    def _listening(self, message: Message) -> None:
        failed = isinstance(message.event, ListeningFailed)
        self.listening_error = message.event.error if failed else ""
        self.context.touch_state()

    def _over(self, _: Message) -> None:
        self.is_closed = True
        self.context.touch_state()

    def current(self) -> CallState:
        """Return the state as it is now, even in the middle of a publication."""
        return find(self)

    def refusal(self, verb: Verb) -> str:
        """Return why a verb would do nothing now; empty if it would do something."""
        self.context.router.catch_up()
        return refusal(self, verb)

    def update(self) -> None:
        """Find the state, and publish it if it has changed; an illegal change is not made."""
        state = find(self)
        if state == self.state:
            return
        try:
            check_step(self.state, state, self.control.under_way)
        except IllegalStepError as error:
            illegal_steps.append(error)
            self.context.router.caught(error)
            log.exception("illegal_step")
            return
        self.state = state
        self.context.enter(state)
        self.since_s = trio.current_time()
        self.number += 1
        changed = StateChanged(state=state, number=self.number)
        self.context.router.publish_detached(changed, "call")

    def work(self) -> AnswerPhase:
        """Return the phase of the answer being generated; ``idle`` for none.

        One of permission, input, tool, thinking and idle.
        """
        answer = self.answers.newest_answer_of(self.context.floor.heard)
        if answer is None or (answer.outcome is not None and not self.answers.is_generating):
            return "idle"
        if answer.is_asking:
            return "input"
        if answer.phase == "tool" and answer.outcome is None:
            return "tool"
        if answer.phase in ("permission", "tool"):
            return self.phase_of(answer)
        if not self._tools:
            return "thinking"
        self._tools = [call for call in self._tools if not call.is_stale]
        runs = any(call.run is None or not call.run.is_in_background for call in self._tools)
        return "tool" if runs else "thinking"

    def phase_of(self, answer: Answer) -> AnswerPhase:
        """Return the phase of an answer as people see it: the verdict on its tool may be known
        before the tool has heard of it."""
        phase = answer.seen_phase
        return "tool" if phase == "permission" and not self._permissions.pending else phase

    @property
    def is_next(self) -> bool:
        """Whether an answer waits to be heard, or a redirect waits for the step that it cut."""
        return self.answers.audio.is_pending or self.control.under_way == "redirect"
