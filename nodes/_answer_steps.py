"""Builds the messages for each step of an answer: the conversation, then the steps so far."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import trio

from bargein.bridge import AgentEntry, History, JobEntry, NoteEntry, ToolEntry, UserEntry
from bargein.bridge.events import ToolCall, ToolResult
from bargein.bridge.history import as_chat

from ._answer_fallback import GO_ON
from ._user_words_last import LastAsked, newest, with_last_word

if TYPE_CHECKING:
    from bargein.bridge.history import Entry

    from ._conversation_context import ConversationContext
    from .llm import ToolCallRequest
    from .tools import RunningTool

ChatMessage = dict[str, Any]

_ID = re.compile(r"[A-Za-z0-9_-]{1,34}")
"""The ids of tool calls that every API accepts, with room for a numeric suffix: OpenAI allows 40
characters."""

Messages = Callable[["ConversationContext"], list[ChatMessage]]


def _called(request: ToolCallRequest) -> ToolCall:
    """Return the event of a call that a model asks for."""
    return ToolCall(
        name=request.name,
        arguments=dict(request.arguments or {}),
        id=request.id,
        provider=request.provider,
        extra=dict(request.extra),
    )


class AnswerSteps:
    """The messages for the model: the conversation before the answer, then the answer's steps."""

    def __init__(
        self, context: ConversationContext, history: History, last_asked: LastAsked
    ) -> None:
        """Start from the conversation.

        Args:
            context: The conversation.
            history: The history of the call, which includes the conversation.
            last_asked: What models were last asked about in this call.
        """
        self._context = context
        self._history = history
        self._last_asked = last_asked
        self.restart()
        self._ids: set[str] = set()
        self._asked: list[ChatMessage] = []
        self._steps: list[Entry] = []
        self._calls: dict[str, ToolCall] = {}
        self._text = ""
        self._answer = 0
        """Each step has a number like an answer, so that its words and tool calls stay in order."""

    def restart(self) -> None:
        """Take a snapshot of the conversation as what came before the answer."""
        self._before = self._context.copy()
        self._seen = len(self._before)
        self._waits_for_results = bool(self._history.unsettled)
        in_order = self._last_asked.in_order(self._before.entries)
        self._before = with_last_word(self._before.with_entries(in_order))
        self.newest_seen = newest(self._before.entries)
        """The newest user words or job result that the model has seen."""

    def messages(self, messages: Messages) -> list[ChatMessage]:
        self._add_results()
        before = messages(self._before)
        self._asked = before
        return [*before, *as_chat(self._steps, note_tag=self._context.note_tag)]

    @property
    def has_tools(self) -> bool:
        """Whether the answer has run tools."""
        return any(isinstance(entry, ToolEntry) for entry in self._steps)

    def broken_off(self, asked: list[ChatMessage], text: str) -> list[ChatMessage]:
        """Return the messages that ask the next model to continue this answer."""
        now_s = trio.current_time()
        said = AgentEntry(now_s, self._answer - 1, "", text, text)
        note = NoteEntry(now_s, GO_ON)
        return [*asked, *as_chat([said, note], note_tag=self._context.note_tag)]

    def _add_results(self) -> None:
        """Add results that have arrived since to the tool calls of earlier answers."""
        if self._waits_for_results:
            before = self._before.entries
            now = {e.call.id: e for e in self._context.entries if isinstance(e, ToolEntry)}
            self._before = self._before.with_entries(
                [
                    now.get(entry.call.id, entry) if isinstance(entry, ToolEntry) else entry
                    for entry in before
                ]
            )

    def add_step(
        self, text: str, requests: list[ToolCallRequest]
    ) -> list[tuple[ToolCallRequest, ToolCall]]:
        """Record the model's text; return its tool calls with ids that are unique in the call."""
        self._text = text
        self._answer -= 1  # negative, so it never equals the number of a real answer
        self._ids.update(call["id"] for m in self._asked for call in m.get("tool_calls") or ())
        if text:
            self._steps.append(AgentEntry(trio.current_time(), self._answer, "", text, text))
        unique = [replace(request, id=self._unique(request.id)) for request in requests]
        calls = [(request, _called(request)) for request in unique]
        self._calls |= {event.id: event for _, event in calls}
        return calls

    def add_note(self, note: str) -> None:
        """Add a note for the model, which only this answer sees."""
        self._steps.append(NoteEntry(trio.current_time(), note))

    def add_result(self, running: RunningTool, result: ToolResult) -> None:
        last = self._steps[-1] if self._steps else None
        entry = ToolEntry(
            trio.current_time(),
            self._calls[running.id],
            result,
            answer=self._answer,
            said_chars=len(self._text),
            together=isinstance(last, ToolEntry) and last.answer == self._answer,
        )
        self._steps.append(entry)

    def add_late(self, *, is_heard: bool) -> None:
        """Append what the user said, and any notes, since the last step.

        Args:
            is_heard: False for an answer in the background; it gets nothing of the later
                conversation.
        """
        late = self._context.entries[self._seen :]
        self._seen += len(late)
        if is_heard:
            self._steps += [e for e in late if isinstance(e, (UserEntry, NoteEntry))]
            saw_all = not any(isinstance(e, JobEntry) for e in late)
            self.newest_seen = (newest(late) or self.newest_seen) if saw_all else None

    def _unique(self, id: str) -> str:
        base = id if _ID.fullmatch(id) else "call"
        unique, count = base, 1
        while unique in self._ids or unique in self._history.tool_ids:
            count += 1
            unique = f"{base}_{count}"
        self._ids.add(unique)
        return unique
