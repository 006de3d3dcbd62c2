"""How entries are written down and read."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest
import structlog

from bargein import (
    AgentEntry,
    InterruptionRecord,
    JobEntry,
    NoteEntry,
    ToolEntry,
    ToolRecord,
    UserEntry,
)
from bargein.conversations import ConversationError, from_record, to_record
from bargein.events import JobFinished, ToolCall, ToolResult

VERSION = 2

RECORD = InterruptionRecord(
    answer=1,
    verb="cancel",
    by="caller",
    cause="call.control",
    phase="tool",
    at_s=4.5,
    elapsed_s=1.0,
    generated="one two",
    heard="one",
    basis="words",
    step=2,
    tools=(ToolRecord("a", "look", None, 0.0),),
    directive="ask",
)
CALL = ToolCall(name="look", arguments={"for": ["décaf", {"deep": "\ud800"}]}, id="a")
RESULT = ToolResult(name="look", id="a", content="x", outcome="timed_out", ran_s=2.5, error=True)
ENTRIES = [
    UserEntry(1.5, "咖啡 \u2028 \x00"),
    NoteEntry(2.0, "closed"),
    NoteEntry(2.0, "resumed: + x", kind="control"),
    AgentEntry(3.0, 1, "agent", "one two", "one"),
    AgentEntry(3.0, 1, "agent", "one two", "one", RECORD),
    ToolEntry(4.0, CALL),
    ToolEntry(4.0, CALL, RESULT, answer=3, said_chars=7, mark="committing", together=True),
    JobEntry(5.0, JobFinished(id="a", name="look", content="x", outcome="effect_unknown")),
]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.role)
def test_every_entry_comes_back_as_it_was(entry):
    """What is read with the same clock is equal; with another clock its times are moved."""
    record = to_record(entry, 1024.0)
    assert from_record(record, 1024.0) == entry
    moved = from_record(record, 1000.0)
    assert moved.at_s == entry.at_s + 24
    if isinstance(entry, AgentEntry) and entry.interruption is not None:
        assert moved.interruption.at_s == RECORD.at_s + 24
    plain = json.loads(record)
    assert (plain["v"], plain["role"], plain["at_s"]) == (VERSION, entry.role, entry.at_s + 1024)


def test_arguments_that_json_has_no_words_for():
    """They are written as Python shows them; what contains itself is refused."""
    entry = ToolEntry(0.0, ToolCall.model_construct(name="x", id="a", arguments={"b": {1}}))
    assert from_record(to_record(entry, 0.0), 0.0).call.arguments == {"b": "{1}"}
    loop: list = []
    loop.append(loop)
    with pytest.raises(ValueError, match="Circular"):
        to_record(ToolEntry(0.0, ToolCall.model_construct(name="x", arguments={"b": loop})), 0.0)


@pytest.mark.parametrize(
    "half", ["", "{", '{"v":1,"role":"us', "[]", "5", '{"v":1}', '{"role":"x"}']
)
def test_half_a_record_is_left_out(half):
    """It is logged, without its words."""
    with structlog.testing.capture_logs() as logs:
        assert from_record(half, 0.0) is None
    assert logs
    assert {entry["log_level"] for entry in logs} == {"error"}


def test_a_record_that_nests_too_deeply_is_left_out():
    """It is a record that cannot be read, and keeps no conversation from opening."""
    deep = "[" * 200_000 + "]" * 200_000
    assert from_record(f'{{"type": "user", "content": {deep}}}', 0.0) is None


def test_what_can_be_read_of_a_record_is_kept():
    """A result or a record of a cut that cannot be read is left out, and the rest is kept."""
    tool, agent = ENTRIES[6], ENTRIES[4]
    plain = json.loads(to_record(tool, 0.0))
    plain["result"]["outcome"] = "exploded"
    with structlog.testing.capture_logs():
        assert from_record(json.dumps(plain), 0.0) == replace(tool, result=None)
        plain = json.loads(to_record(agent, 0.0))
        del plain["interruption"]["verb"]
        assert from_record(json.dumps(plain), 0.0) == replace(agent, interruption=None)


def test_newer_records_are_refused():
    """Fields of a newer version of the same format are left out; a newer format is an error."""
    plain = json.loads(to_record(ENTRIES[0], 0.0))
    assert from_record(json.dumps({**plain, "mood": "good"}), 0.0) == ENTRIES[0]
    with pytest.raises(
        ConversationError, match="has the version 3, but this program reads only up to 2"
    ):
        from_record(json.dumps({**plain, "v": 3}), 0.0)


def test_records_of_the_first_version_are_read():
    """They name an answer a turn, in fields, in the id of its job, and in the note of its move."""
    cut = {**asdict(RECORD), "turn": 1}
    del cut["answer"]
    was = {"at_s": 3.0, "role": "agent", "turn": 1, "agent": "agent"}
    was |= {"generated": "one two", "heard": "one", "interruption": cut}
    assert from_record(json.dumps({"v": 1, **was}, default=repr), 0.0) == ENTRIES[4]
    assert from_record(json.dumps(was), 0.0) == ENTRIES[4]
    tool = json.loads(to_record(ENTRIES[6], 0.0))
    tool |= {"v": 1, "turn": tool.pop("answer")}
    assert from_record(json.dumps(tool), 0.0) == ENTRIES[6]
    note = {"v": 1, "at_s": 2.0, "role": "note", "kind": "control"}
    moved = {**note, "content": "turn 7 was moved to the background"}
    assert from_record(json.dumps(moved), 0.0).content == "answer 7 was moved to the background"
    said = {**moved, "kind": "developer"}
    assert from_record(json.dumps(said), 0.0).content == "turn 7 was moved to the background"
    job = json.loads(to_record(ENTRIES[7], 0.0)) | {"v": 1}
    for id, now in (("turn_7", "answer_7"), ("turn_7a", "turn_7a"), ("a", "a")):
        job["job"]["id"] = id
        assert from_record(json.dumps(job), 0.0).job.id == now
