"""The memory of a call, by itself."""

from __future__ import annotations

import json
from typing import Any

from bargein import (
    AgentEntry,
    History,
    InterruptionRecord,
    JobEntry,
    ToolEntry,
    ToolRecord,
    UserEntry,
)
from bargein.control import Verb
from bargein.events import JobFinished, ToolCall, ToolResult

DIRECTIVES: Any = {"cancel": "ask", "emergency_stop": "ask", "redirect": "continue"}


def record(answer: int, heard: str, verb: Verb = "barge_in", **more: Any) -> InterruptionRecord:
    fields = {"cause": "user.started_speaking", "phase": "text", "at_s": 1.0, **more}
    return InterruptionRecord(
        answer=answer,
        verb=verb,
        by="caller",
        elapsed_s=fields["at_s"] - 0.5,
        generated="one two",
        heard=heard,
        basis="words",
        directive=DIRECTIVES.get(verb, ""),
        **fields,
    )


def result(id: str, content: str = "done", **more: Any) -> ToolResult:
    return ToolResult(name="book", id=id, content=content, **more)


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


async def test_an_answer_keeps_its_place(autojump_clock):
    """Entries stand in the order in which things began."""
    history = History()
    history.set_agent(1, "agent", "one", "", "clock")
    history.add_user("wait")
    history.add_note("the caller is on hold")
    history.set_agent(1, "agent", "one two", "one", "clock")
    assert [entry.role for entry in history] == ["agent", "user", "note"]


async def test_one_record_for_each_cut_answer(autojump_clock):
    """A second record of an answer that is no stronger changes nothing; later hearing edits it."""
    history = History()
    history.set_interruption(record(1, "one"), "agent")
    history.set_interruption(record(1, "one", cause="agent.handoff"), "agent")
    history.set_agent(1, "agent", "one two", "one two", "reported")
    history.set_interruption(record(2, ""), "agent")
    first, second = history.interruptions
    assert (first.cause, first.heard, first.basis) == (
        "user.started_speaking",
        "one two",
        "reported",
    )
    assert second.answer == 2
    assert len(history) == 2


async def test_a_stronger_verb_upgrades_the_record(autojump_clock):
    """It takes over, and keeps when and where the answer was first cut; a weaker one does not."""
    history = History()
    history.set_interruption(record(1, "one", step=2), "agent")
    held = history.interruptions
    later = {"at_s": 3.0, "phase": "stopping", "cause": "call.control", "step": 3}
    history.set_interruption(record(1, "one two", "cancel", **later), "agent")
    history.set_interruption(record(1, "one two", "redirect", **later), "agent")
    (cut,) = history.interruptions
    assert (cut.verb, cut.directive, cut.cause, cut.heard) == (
        "cancel",
        "ask",
        "call.control",
        "one two",
    )
    assert (cut.at_s, cut.elapsed_s, cut.phase, cut.step) == (1.0, 0.5, "text", 2)
    assert held[0].verb == "barge_in"  # what one holds does not change


async def test_the_record_of_a_pause_gives_way(autojump_clock):
    """A pause cuts nothing: whatever cuts the answer later is its record."""
    history = History()
    history.set_interruption(record(1, "one", "pause"), "agent")
    assert [r.verb for r in history.interruptions] == ["pause"]
    history.set_interruption(record(1, "one", at_s=9.0), "agent")
    assert [(r.verb, r.at_s) for r in history.interruptions] == [("barge_in", 9.0)]


async def test_a_record_lists_the_tools_of_its_answer(autojump_clock):
    """It does from the first, and tells what became of each when that is known."""
    history = History()
    history.add_tool_call(ToolCall(name="look", id="x"), answer=1)
    history.add_tool_call(ToolCall(name="book", id="a"), answer=2)
    history.set_interruption(record(2, ""), "agent")
    assert history.interruptions[0].tools == (ToolRecord("a", "book", None, 0.0),)
    history.add_tool_result(result("a", outcome="completed_after_interrupt", ran_s=2.5))
    done = ToolRecord("a", "book", "completed_after_interrupt", 2.5)
    assert history.interruptions[0].tools == (done,)
    history.set_agent(2, "agent", "one two", "one", "words")
    history.set_interruption(record(2, "one", "cancel"), "agent")
    assert history.interruptions[0].tools == (done,)


async def test_a_tool_call_has_one_result(autojump_clock):
    """The first result stands; one without its call, or sent twice, adds nothing."""
    history = History()
    call = ToolCall(name="book", arguments={"day": "Monday"}, id="a")
    history.add_tool_call(call, 1)
    history.add_tool_call(call, 1)
    history.add_tool_result(ToolResult(name="book", id="b", content="other"), 2)
    history.add_tool_result(ToolResult(name="book", id="a", content="done"), 3)
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


async def test_calls_with_one_id_are_kept_apart(autojump_clock):
    """Each has an id of its own here; results come in the order of the calls."""
    history = History()
    for _ in range(3):
        history.add_tool_call(ToolCall(name="book", id="a"))
    history.add_tool_call(ToolCall(name="book", id="a_2"))
    for content in ("first", "second"):
        history.add_tool_result(result("a", content))
    tools = [entry for entry in history if isinstance(entry, ToolEntry)]
    assert [entry.call.id for entry in tools] == ["a", "a_2", "a_3", "a_2_2"]
    assert [entry.result and (entry.result.id, entry.result.content) for entry in tools] == [
        ("a", "first"),
        ("a_2", "second"),
        None,
        None,
    ]
    again = History(history)
    again.add_tool_call(ToolCall(name="book", id="a"))
    again.add_tool_result(result("a", "new"))
    assert [entry.outcome for entry in again] == ["completed", "completed", None, None, "completed"]
    assert again.entries[-1].call.id == "a_4"


async def test_a_late_result_lands_in_its_entry(autojump_clock):
    """That a tool has completed after all takes the place of not knowing, and of nothing else."""
    history = History()
    for id, first in (("a", "effect_unknown"), ("b", "denied")):
        history.add_tool_call(ToolCall(name="book", id=id))
        history.add_user("wait")
        history.add_tool_result(result(id, outcome=first))
        for late in ("completed_after_interrupt", "effect_unknown"):
            history.add_tool_result(result(id, "late", outcome=late))
    outcomes = [entry.outcome for entry in history if isinstance(entry, ToolEntry)]
    assert outcomes == ["completed_after_interrupt", "denied"]


async def test_marks_only_rise(autojump_clock):
    """A tool has begun, is inside its effect, and no more is said of it once it has a result."""
    history = History()
    history.add_tool_call(ToolCall(name="book", id="a"))
    marks = []
    for mark in ("began", "called", "committing", "began"):
        history.mark_tool("a", mark)
        marks.append(history.entries[0].mark)
    assert marks == ["began", "began", "committing", "committing"]
    history.add_tool_call(ToolCall(name="book", id="a"))
    history.mark_tool("a", "began")  # the newest call of that id
    history.mark_tool("nobody", "began")
    assert [entry.mark for entry in history] == ["committing", "began"]
    history.add_tool_result(result("a"))
    history.add_tool_result(result("a"))
    history.mark_tool("a", "committing")
    assert history.entries[1].mark == "began"


async def test_what_was_called_together(autojump_clock):
    """Calls without a result between them are of one step; another answer or entry parts them."""
    history = History()
    history.set_agent(1, "agent", "Let me look.", "", "clock")
    history.add_tool_call(ToolCall(name="look", id="a"), answer=1)
    history.add_tool_call(ToolCall(name="look", id="b"), answer=1)
    history.add_tool_result(result("a"))
    history.add_tool_result(result("b"))
    history.add_tool_call(ToolCall(name="look", id="c"), answer=1)
    history.add_tool_call(ToolCall(name="look", id="d"), answer=2)
    history.add_user("hurry")
    history.add_tool_call(ToolCall(name="look", id="e"), answer=2)
    tools = [entry for entry in history if isinstance(entry, ToolEntry)]
    assert [(entry.call.id, entry.together, entry.said_chars) for entry in tools] == [
        ("a", False, 12),
        ("b", True, 12),
        ("c", False, 12),
        ("d", False, 0),
        ("e", False, 0),
    ]


async def test_the_result_of_a_job(autojump_clock):
    """It is an entry of its own, once, under the id that its call has here."""
    history = History()
    for _ in range(2):
        history.add_tool_call(ToolCall(name="book", id="a"))
        history.add_tool_result(result("a", outcome="backgrounded"))
    for number in (1, 2, 3):
        job = JobFinished(id="a", name="book", content="booked")
        for message in (number, number):  # a second route of the same event
            history.add_job(job, message)
    jobs = [entry.job for entry in history if isinstance(entry, JobEntry)]
    assert [j.id for j in jobs] == ["a", "a_2", "a"]


async def test_what_a_user_adds_when_resuming(autojump_clock):
    """It is a note of a verb, not of the developer; nothing added leaves nothing."""
    history = History()
    history.add_resumed(2, " only EU ")
    history.add_resumed(0, "faster")
    history.add_resumed(1, "  ")
    assert [(entry.content, entry.kind) for entry in history] == [
        ("resumed at step 2: + only EU", "control"),
        ("resumed: + faster", "control"),
    ]


async def test_every_change_is_told_as_it_happens(autojump_clock):
    """Each has its index and its entry; what changes nothing is not told."""
    history = History()
    told: list[tuple[int, object]] = []
    history.on_change = lambda index, entry: told.append((index, entry))
    history.add_user("hi")
    history.set_agent(1, "agent", "one", "", "clock")
    history.set_agent(1, "agent", "one", "", "words")
    history.add_tool_call(ToolCall(name="book", id="a"), answer=1)
    history.set_agent(1, "agent", "one", "one", "words")
    history.add_tool_result(result("a"))
    history.add_tool_result(result("a"))
    assert [index for index, _ in told] == [0, 1, 2, 1, 2]
    assert dict(told) == dict(enumerate(history.entries))


async def test_a_history_goes_on(autojump_clock):
    """It begins with what was, and new answers do not touch old ones of their number."""
    history = History()
    history.set_agent(1, "agent", "one", "one", "clock")
    history.add_tool_call(ToolCall(name="book", id="a"), answer=3)
    history.add_tool_result(result("a"))
    again = History(history)
    assert (again.entries, again.last_answer, History().last_answer) == (history.entries, 3, 0)
    again.add_tool_call(ToolCall(name="book", id="b"), answer=3)
    assert again.entries[-1].together is False
    again.set_agent(1, "agent", "two", "", "clock")
    assert [e.generated for e in again if isinstance(e, AgentEntry)] == ["one", "two"]
    assert again.note_tag != history.note_tag
    assert len(again.note_tag) == 12
