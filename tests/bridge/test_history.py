"""The memory of a call, by itself."""

from __future__ import annotations

import json

from bridge import AgentEntry, History, InterruptionRecord, UserEntry
from bridge.events import ToolCall, ToolResult


def record(turn: int, heard: str, cause: str = "user.started_speaking") -> InterruptionRecord:
    return InterruptionRecord(
        turn=turn,
        verb="barge_in",
        by="caller",
        cause=cause,
        phase="running",
        at_s=1.0,
        elapsed_s=0.5,
        generated="one two",
        heard=heard,
        basis="words",
    )


async def test_a_message_is_remembered_once(autojump_clock):
    """The same message adds nothing the second time; without a number every call adds."""
    history = History()
    for _ in range(2):
        history.add_user("latte", 7)
        history.add_user("please")
    assert [entry.content for entry in history] == ["latte", "please", "please"]


async def test_white_space_is_nothing_said(autojump_clock):
    """An empty transcript leaves no entry."""
    history = History()
    history.add_user("  ", 1)
    assert len(history) == 0


async def test_entries_are_a_snapshot(autojump_clock):
    """What one holds does not change when the history does."""
    history = History()
    history.set_agent(1, "agent", "one", "", "clock")
    before = history.entries
    history.set_agent(1, "agent", "one two", "one", "words")
    assert before == (AgentEntry(0.0, 1, "agent", "one", ""),)
    assert history.entries == (AgentEntry(0.0, 1, "agent", "one two", "one"),)


async def test_a_turn_keeps_its_place(autojump_clock):
    """Entries stand in the order in which things began."""
    history = History()
    history.set_agent(1, "agent", "one", "", "clock")
    history.add_user("wait")
    history.add_note("the caller is on hold")
    history.set_agent(1, "agent", "one two", "one", "clock")
    assert [entry.role for entry in history] == ["agent", "user", "note"]


async def test_one_record_for_each_cut_turn(autojump_clock):
    """A second record of a turn takes the place of the first; later hearing edits it."""
    history = History()
    history.set_interruption(record(1, "one"), "agent")
    history.set_interruption(record(1, "one", "call.emergency_stop"), "agent")
    history.set_agent(1, "agent", "one two", "one two", "reported")
    history.set_interruption(record(2, ""), "agent")
    first, second = history.interruptions
    assert (first.cause, first.heard, first.basis) == ("call.emergency_stop", "one two", "reported")
    assert second.turn == 2
    assert len(history) == 2


async def test_a_tool_call_has_one_result(autojump_clock):
    """The first result stands; one without its call, or sent twice, adds nothing."""
    history = History()
    call = ToolCall(name="book", arguments={"day": "Monday"}, id="a")
    history.add_tool_call(call, 1)
    history.add_tool_call(call, 1)
    history.add_tool_result(ToolResult(name="book", id="b", content="other"), 2)
    history.add_tool_result(ToolResult(name="book", id="a", content="done"), 3)
    history.add_tool_result(ToolResult(name="book", id="a", content="again"), 4)
    (entry,) = history.entries
    assert entry.role == "tool"
    assert entry.call == call
    assert entry.result is not None
    assert entry.result.content == "done"


async def test_as_json_is_plain_data(autojump_clock):
    """Every kind of entry survives a round through JSON."""
    history = History()
    history.add_user("latte")
    history.add_note("note")
    history.add_tool_call(ToolCall(name="book", id="a"))
    history.add_tool_call(ToolCall(name="look", id="b"))
    history.add_tool_result(ToolResult(name="book", id="a", content="done"))
    history.set_interruption(record(1, "one"), "agent")
    data = json.loads(json.dumps(history.as_json()))
    assert [entry["role"] for entry in data] == ["user", "note", "tool", "tool", "agent"]
    assert data[2]["result"]["content"] == "done"
    assert data[3]["result"] is None
    assert data[4]["interruption"]["heard"] == "one"
    assert data[0] == {"role": "user", "at_s": 0.0, "content": "latte"}
    assert isinstance(history.entries[0], UserEntry)
