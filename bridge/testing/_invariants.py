"""The laws of interruption, which hold for a call wherever it is interrupted.

Each law is a function of a ``FinishedCall`` that yields a sentence for each breach.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..events import (
    AgentGenerationComplete,
    AnswerEnded,
    ToolCall,
    ToolResult,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from ..history._history import AgentEntry, ToolEntry, UserEntry
from ._caller import Caller


@dataclass(slots=True)
class FinishedCall:
    """A call after its scenario, with the facts about it."""

    caller: Caller
    may_end: bool
    """Whether the call may be over."""
    at_cut: tuple[AgentEntry, ...] = ()
    """The agents' entries right after the interrupt."""
    logs: Sequence[Mapping[str, Any]] = ()
    usual_errors: frozenset[str] | None = None
    """The errors logged even without an interrupt; ``None`` if unknown."""
    is_expected: Callable[[Exception], bool] = lambda error: False
    """Whether an error is allowed, even if only the interrupt causes it."""


def is_settled(finished: FinishedCall) -> Iterator[str]:
    """The call is idle at the end, or over if it may be."""
    call = finished.caller.call
    if call.ended.is_set():
        if not finished.may_end:
            yield f"the call has ended: {call.end_reason!r}"
    elif call.current_state != ("listening" if _is_spoken_to(finished) else "idle"):
        yield f"the call is {call.current_state!r} though nothing is to come"


def _is_spoken_to(finished: FinishedCall) -> bool:
    """Whether the caller has started to speak and not stopped."""
    for item in reversed(finished.caller.received):
        if isinstance(item.event, UserStartedSpeaking | UserStoppedSpeaking):
            return isinstance(item.event, UserStartedSpeaking)
    return False


def words_are_kept(finished: FinishedCall) -> Iterator[str]:
    """Everything that the user said is in the history, in order."""
    entries = iter([e.content for e in finished.caller.call.history if isinstance(e, UserEntry)])
    for text in finished.caller.said:
        if text not in entries:  # consumes the iterator until it is found
            yield f"the history has lost the user's {text!r}, or its place"
            return


def heard_was_generated(finished: FinishedCall) -> Iterator[str]:
    """What was heard of an answer is a prefix of what was generated."""
    for entry in _agents(finished):
        if not entry.generated.startswith(entry.heard):
            yield f"answer {entry.answer} has heard {entry.heard!r} of {entry.generated!r}"


def heard_stays_heard(finished: FinishedCall) -> Iterator[str]:
    """What was heard at the interrupt stays heard, and a cut answer does not grow."""
    later = {entry.answer: entry for entry in _agents(finished)}
    for entry in finished.at_cut:
        now = later.get(entry.answer)
        if now is None or not now.heard.startswith(entry.heard):
            yield f"answer {entry.answer} had been heard as {entry.heard!r}, and now as {now!r}"
        elif _is_cut(entry) and now.generated != entry.generated:
            yield f"answer {entry.answer} grew after it was cut: to {now.generated!r}"


def _is_cut(entry: AgentEntry) -> bool:
    """Whether the answer is over; a paused answer, or one in the background, continues."""
    record = entry.interruption
    return record is not None and record.verb not in ("pause", "background")


def cut_once(finished: FinishedCall) -> Iterator[str]:
    """An answer has at most one interruption record, and exactly one end."""
    records = [record.answer for record in finished.caller.call.history.interruptions]
    yield from (f"answer {answer} has {n} records" for answer, n in _twice(records))
    kind: type[AgentGenerationComplete | AnswerEnded]
    for kind in (AgentGenerationComplete, AnswerEnded):
        ends = [event.answer for event in finished.caller.events(kind)]
        yield from (f"answer {answer} has {n} {kind.__name__}" for answer, n in _twice(ends))
    over = {event.answer for event in finished.caller.events(AnswerEnded)}
    for event in finished.caller.events(AgentGenerationComplete):
        if event.answer not in over:
            yield f"answer {event.answer} has no AnswerEnded"


def cut_is_cut(finished: FinishedCall) -> Iterator[str]:
    """Nothing of a cut run reaches the caller."""
    yield from finished.caller.broken


def tools_have_results(finished: FinishedCall) -> Iterator[str]:
    """Each tool call has exactly one result, as an event and in the history."""
    called = Counter((event.name, event.id) for event in finished.caller.events(ToolCall))
    told = Counter((event.name, event.id) for event in finished.caller.events(ToolResult))
    for name, id in called | told:
        if called[name, id] != told[name, id]:
            yield f"{name} {id!r} has {told[name, id]} results for {called[name, id]} calls"
    for entry in finished.caller.call.history:
        if isinstance(entry, ToolEntry) and entry.result is None:
            yield f"the history has no result of {entry.call.name} {entry.call.id!r}"
    yield from (
        f"{work.name} {work.id!r} still runs" for work in finished.caller.call.running_tools
    )


def nothing_failed(finished: FinishedCall) -> Iterator[str]:
    """Only errors that are also logged without an interrupt are logged."""
    if finished.usual_errors is not None:
        unexpected = [entry for entry in finished.logs if not _is_expected(entry, finished)]
        for error in sorted(errors(unexpected) - finished.usual_errors):
            yield f"an error was logged: {error}"


def _is_expected(entry: Mapping[str, Any], finished: FinishedCall) -> bool:
    cause = entry.get("exc_info")
    return isinstance(cause, Exception) and finished.is_expected(cause)


def errors(logs: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the errors among log entries, without the parts that differ between runs."""
    return frozenset(_error(e) for e in logs if e["log_level"] in ("error", "critical"))


def _error(entry: Mapping[str, Any]) -> str:
    what = [entry[key] for key in ("route", "stage", "listener", "sink", "error") if key in entry]
    cause = entry.get("exc_info")
    what += [repr(cause)] if isinstance(cause, BaseException) else []
    return " ".join(map(str, [entry["event"], *what]))


def _agents(finished: FinishedCall) -> tuple[AgentEntry, ...]:
    return agent_entries(finished.caller)


def agent_entries(caller: Caller) -> tuple[AgentEntry, ...]:
    return tuple(entry for entry in caller.call.history if isinstance(entry, AgentEntry))


def _twice(answers: Iterable[int]) -> Iterator[tuple[int, int]]:
    return ((answer, n) for answer, n in Counter(answers).items() if n > 1)


LAWS: tuple[Callable[[FinishedCall], Iterator[str]], ...] = (
    is_settled,
    words_are_kept,
    heard_was_generated,
    heard_stays_heard,
    cut_once,
    cut_is_cut,
    tools_have_results,
    nothing_failed,
)
