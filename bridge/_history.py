"""What was said in a call: the user's words as they were, the agent's as they were heard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import trio

from .events import HeardBasis, ToolCall, ToolResult

Role = Literal["user", "agent", "note", "tool_call", "tool_result"]


@dataclass(frozen=True, slots=True)
class InterruptionRecord:
    """That a turn was cut: when, by what, and how much of it was heard."""

    turn: int
    verb: str
    """``barge_in`` or ``emergency_stop``."""
    by: str
    """Who published the event that cut the turn."""
    cause: str
    """The alias of that event, or the reason in words where no event cut it."""
    phase: str
    """``waiting``, ``running``, or ``delivered``: all was generated, and not all heard."""
    at_s: float
    elapsed_s: float
    """Seconds from the start of the turn to the cut."""
    generated: str
    heard: str
    basis: HeardBasis


@dataclass(frozen=True, slots=True)
class UserEntry:
    """What the user said."""

    at_s: float
    content: str
    role: Literal["user"] = "user"


@dataclass(frozen=True, slots=True)
class AgentEntry:
    """What an agent said in one turn."""

    at_s: float
    turn: int
    agent: str
    """The name of the bridge."""
    generated: str = ""
    heard: str = ""
    """What the caller heard of it; always a prefix of `generated`."""
    interruption: InterruptionRecord | None = None
    role: Literal["agent"] = "agent"


@dataclass(frozen=True, slots=True)
class NoteEntry:
    """A line of the developer's for the model; neither side said it."""

    at_s: float
    content: str
    role: Literal["note"] = "note"


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """A tool that was called, and what it returned."""

    at_s: float
    call: ToolCall
    result: ToolResult | None = None
    role: Literal["tool"] = "tool"


Entry = UserEntry | AgentEntry | NoteEntry | ToolEntry


class History:
    """The memory of a call, in the order in which things began.

    Entries are immutable: whoever holds one holds it as it was.  A change puts a new one in its
    place.
    """

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._turns: dict[int, int] = {}
        self._tools: dict[str, int] = {}
        self._seen: set[int] = set()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything so far; a snapshot that does not change."""
        return tuple(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    @property
    def interruptions(self) -> tuple[InterruptionRecord, ...]:
        """The record of every turn that was cut, in order."""
        agents = (entry for entry in self._entries if isinstance(entry, AgentEntry))
        return tuple(entry.interruption for entry in agents if entry.interruption is not None)

    def add_user(self, content: str, message: int | None = None) -> None:
        """Add what the user said.

        Args:
            content: The words; only white space adds nothing.
            message: The number of the message that brought them; the same message adds nothing
                the second time.
        """
        if self._is_new(message) and content.strip():
            self._entries.append(UserEntry(trio.current_time(), content))

    def add_note(self, content: str) -> None:
        """Add a line for the model that neither side said."""
        self._entries.append(NoteEntry(trio.current_time(), content))

    def add_tool_call(self, call: ToolCall, message: int | None = None) -> None:
        """Add that a tool was called."""
        if self._is_new(message):
            self._tools[call.id] = len(self._entries)
            self._entries.append(ToolEntry(trio.current_time(), call))

    def add_tool_result(self, result: ToolResult, message: int | None = None) -> None:
        """Add what a tool returned; one result for each call, others are ignored."""
        index = self._tools.get(result.id)
        if self._is_new(message) and index is not None:
            entry = self._entries[index]
            if isinstance(entry, ToolEntry) and entry.result is None:
                self._entries[index] = replace(entry, result=result)

    def set_agent(
        self, turn: int, agent: str, generated: str, heard: str, basis: HeardBasis
    ) -> None:
        """Put down what an agent has generated in a turn so far, and what was heard of it."""
        index = self._turns.get(turn)
        if index is None:
            self._turns[turn] = len(self._entries)
            self._entries.append(AgentEntry(trio.current_time(), turn, agent, generated, heard))
            return
        entry = self._entries[index]
        assert isinstance(entry, AgentEntry)
        record = entry.interruption and replace(
            entry.interruption, generated=generated, heard=heard, basis=basis
        )
        self._entries[index] = replace(entry, generated=generated, heard=heard, interruption=record)

    def set_interruption(self, record: InterruptionRecord, agent: str) -> None:
        """Put down that a turn was cut; one record a turn, a later one takes its place."""
        self.set_agent(record.turn, agent, record.generated, record.heard, record.basis)
        index = self._turns[record.turn]
        entry = self._entries[index]
        assert isinstance(entry, AgentEntry)
        self._entries[index] = replace(entry, interruption=record)

    def as_json(self) -> list[dict[str, Any]]:
        """Return all entries as plain data."""
        return [_plain(entry) for entry in self._entries]

    def _is_new(self, message: int | None) -> bool:
        if message is None:
            return True
        if message in self._seen:
            return False
        self._seen.add(message)
        return True


def _plain(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, ToolEntry):
        result = entry.result and entry.result.model_dump(exclude={"type"})
        call = entry.call.model_dump(exclude={"type"})
        return {"role": entry.role, "at_s": entry.at_s, "call": call, "result": result}
    data = asdict(entry)
    return {"role": data.pop("role"), **data}
