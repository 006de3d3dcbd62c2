"""Keeps an agent's words from coming last in a request to a model, which providers refuse.

What the user says during an answer is a turn of its own.  If that answer has taken it in, because
its model was asked, or asked again after tools, no model is asked about it twice.  If it has not,
the words are placed after the answer, although they were said before it was heard.

If nobody has said anything since an agent's last words, as at a hand-over, a note says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

import trio

from bargein.bridge import AgentEntry, JobEntry, NoteEntry, ToolEntry, UserEntry, current_run
from bargein.bridge.events import JobAnnounced
from bargein.routes.logs import get_logger

if TYPE_CHECKING:
    from bargein.bridge.history import Entry
    from bargein.routes import Interruption, Outcome, Run

    from ._call_for_nodes import AnsweredCall
    from ._conversation_context import ConversationContext

log = get_logger()

YOUR_TURN = (
    "From the system; the user did not say this.\n"
    "Nobody has said anything since. It is your turn to speak: go on from here."
)
"""The note for a model that is asked right after an agent's words."""


class AnswerOfCall(Protocol):
    """An answer of the call, as ``call.answer_of()`` returns it."""

    number: int
    run: Run | None
    outcome: Outcome | None
    interruption: Interruption | None

    @property
    def heard(self) -> str: ...


@dataclass(frozen=True, slots=True, eq=False)
class _AnsweredRequest:
    answer: AnswerOfCall
    newest_seen: Entry
    at_s: float


def with_announced_last(context: ConversationContext) -> ConversationContext:
    """Move the job result that is to be reported to the end of the conversation.

    What was said after it may be the agent's own words, which must not come last in a request.
    """
    run = current_run()
    event = None if run is None or run.trigger is None else run.trigger.event
    if not isinstance(event, JobAnnounced):
        return context
    announced = [e for e in context.entries if isinstance(e, JobEntry) and e.job.id == event.id]
    others = [entry for entry in context.entries if entry not in announced]
    return context.with_entries([*others, *announced])


class LastAsked:
    """What models were last asked about in one call: by the agents that the caller heard, or by one
    node that was not heard.
    """

    def __init__(self) -> None:
        self._last: _AnsweredRequest | None = None

    def add(self, answer: AnswerOfCall, newest_seen: Entry | None) -> None:
        """Record that an answer asks its model now.

        Args:
            answer: The answer.
            newest_seen: The newest user words or job result that the model sees; ``None`` if it
                sees none, or not all.
        """
        self._last = None
        if newest_seen is not None:
            self._last = _AnsweredRequest(answer, newest_seen, trio.current_time())

    def covers(self, answer: AnswerOfCall, newest_seen: Entry | None) -> bool:
        """Return whether one that asked since this answer's trigger already covers everything new.

        Args:
            answer: The answer that would ask.
            newest_seen: As in ``add()``.
        """
        last, trigger = self._last, None if answer.run is None else answer.run.trigger
        if last is None or trigger is None or last.answer is answer:
            return False
        if last.newest_seen is not newest_seen or trigger.at_s > last.at_s:
            return False
        if trigger.run is not None and trigger.run is last.answer.run:
            return False  # that answer asks for this one, as when it hands the caller over
        fell_short = last.answer.outcome not in (None, "completed")
        if (last.answer.interruption is not None or fell_short) and not last.answer.heard.strip():
            return False  # the caller has heard nothing of that answer
        log.info("turn_answered_already", answer=answer.number, by=last.answer.number)
        return True

    def in_order(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return the entries with what the last answer did not know moved after that answer.

        Args:
            entries: The conversation, in the order in which it was heard.
        """
        last = self._last
        if last is None:
            return entries
        seen = until = 0
        for at in reversed(range(len(entries))):  # from the end: costs the same in a long call
            if entries[at] is last.newest_seen:
                seen = at
                break
            if not until and _is_of(entries[at], last.answer):
                until = at + 1
        else:
            return entries
        late = [entry for entry in entries[seen + 1 : until] if _asks_for_answer(entry)]
        if not late:
            return entries
        own = (entry for entry in entries[seen + 1 : until] if not _asks_for_answer(entry))
        return [*entries[: seen + 1], *own, *late, *entries[until:]]


_of_calls: WeakKeyDictionary[AnsweredCall, LastAsked] = WeakKeyDictionary()


def last_asked_of(call: AnsweredCall) -> LastAsked:
    """Return what the agents that the caller hears were last asked about."""
    return _of_calls.setdefault(call, LastAsked())


def with_last_word(context: ConversationContext) -> ConversationContext:
    """Return a snapshot that does not end with an agent's words; append a note if it would."""
    last = context.entries[-1] if context.entries else None
    if isinstance(last, UserEntry) and last.content.strip() and not last.is_returned:
        return context  # the usual case: rendering a long call to see this would take milliseconds
    chat = context.as_chat()
    if not chat or chat[-1]["role"] != "assistant":
        return context
    return context.copy(NoteEntry(trio.current_time(), YOUR_TURN))


def newest(entries: Sequence[Entry]) -> Entry | None:
    """Return the newest user words or job result; ``None`` if there is none."""
    return next((entry for entry in reversed(entries) if _asks_for_answer(entry)), None)


def _asks_for_answer(entry: Entry) -> bool:
    return isinstance(entry, (UserEntry, JobEntry))


def _is_of(entry: Entry, answer: AnswerOfCall) -> bool:
    return isinstance(entry, (AgentEntry, ToolEntry)) and entry.answer == answer.number
