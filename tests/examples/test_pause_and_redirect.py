"""The analyst of the examples: paused, redirected, cancelled before, amid and after each step."""

from __future__ import annotations

import importlib.util
import os
import queue
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from bargein import ConversationContext, Handle, open_agent
from bargein.events import AnswerEnded, ToolCall

pytestmark = pytest.mark.proof

EXAMPLE = Path(__file__).parents[2] / "examples" / "pause_and_redirect.py"

AT_S = {
    "fetch": {"before": 0.4, "mid": 1.5, "after": 2.6},
    "join": {"before": 2.9, "mid": 4.0, "after": 5.1},
    "score": {"before": 5.4, "mid": 6.5, "after": 7.6},
    "memo": {"before": 7.9, "mid": 9.0, "after": 10.6},
}
"""A step takes 2 s (the memo 2.5 s), and the model thinks for 0.5 s before each."""

NAMES = {
    "fetch": "fetch_customers",
    "join": "join_mrr",
    "score": "score_churn",
    "memo": "write_memo",
}

# begun: how often each of the four steps was begun, a minute after the verb; outcome: how the first
# answer ended; its calls: what the history then says of the step's calls; in the end: how often
# each step was begun once the agent was told to go on; memo: its region, and of how many at most.
# A pause is taken back after a minute, with "only EU"; a redirect says "top 10 only".  What the
# model was asked before it knew is done as it was asked.
TABLE = """
verb     | step  | when   | begun | outcome     | its calls     | in the end | memo
pause    | fetch | before | 1111  | completed   | completed     | 1111       | EU 60
pause    | fetch | mid    | 1111  | completed   | completed     | 1111       | EU 60
pause    | fetch | after  | 1111  | completed   | completed     | 1111       | EU 60
pause    | join  | before | 1111  | completed   | completed     | 1111       | EU 60
pause    | join  | mid    | 1111  | completed   | completed     | 1111       | EU 60
pause    | join  | after  | 1111  | completed   | completed     | 1111       | EU 60
pause    | score | before | 1111  | completed   | completed     | 1111       | EU 60
pause    | score | mid    | 1111  | completed   | completed     | 1111       | EU 60
pause    | score | after  | 1111  | completed   | completed     | 1111       | all 60
pause    | memo  | before | 1111  | completed   | completed     | 1111       | all 60
pause    | memo  | mid    | 1111  | completed   | completed     | 1111       | all 60
pause    | memo  | after  | 1111  | completed   | completed     | 1111       | all 60
redirect | fetch | before | 1111  | redirected  | completed     | 1111       | all 10
redirect | fetch | mid    | 2111  | redirected  | cut completed | 2111       | all 10
redirect | fetch | after  | 1111  | redirected  | completed     | 1111       | all 10
redirect | join  | before | 1111  | redirected  | completed     | 1111       | all 10
redirect | join  | mid    | 1211  | redirected  | cut completed | 1211       | all 10
redirect | join  | after  | 1111  | redirected  | completed     | 1111       | all 10
redirect | score | before | 1111  | redirected  | completed     | 1111       | all 10
redirect | score | mid    | 1111  | redirected  | after after   | 1111       | all 10
redirect | score | after  | 1111  | redirected  | completed     | 1111       | all 10
redirect | memo  | before | 1111  | redirected  | completed     | 1111       | all 10
redirect | memo  | mid    | 1112  | redirected  | cut completed | 1112       | all 10
redirect | memo  | after  | 1111  | redirected  | completed     | 1111       | all 60
cancel   | fetch | before | 0000  | interrupted | -             | 1111       | all 60
cancel   | fetch | mid    | 1000  | interrupted | cut           | 2111       | all 60
cancel   | fetch | after  | 1000  | interrupted | completed     | 1111       | all 60
cancel   | join  | before | 1000  | interrupted | -             | 1111       | all 60
cancel   | join  | mid    | 1100  | interrupted | cut           | 1211       | all 60
cancel   | join  | after  | 1100  | interrupted | completed     | 1111       | all 60
cancel   | score | before | 1100  | interrupted | -             | 1111       | all 60
cancel   | score | mid    | 1110  | interrupted | after         | 1111       | all 60
cancel   | score | after  | 1110  | interrupted | completed     | 1111       | all 60
cancel   | memo  | before | 1110  | interrupted | -             | 1111       | all 60
cancel   | memo  | mid    | 1111  | interrupted | cut           | 1112       | all 60
cancel   | memo  | after  | 1111  | interrupted | completed     | 1111       | all 60
"""

WORDS = {"cut": "cancelled_before_effect", "after": "completed_after_interrupt"}
CASES = [[cell.strip() for cell in line.split("|")] for line in TABLE.strip().splitlines()[1:]]


@dataclass
class Outcome:
    """What came of a verb at a point of the work."""

    begun: str
    outcome: str
    calls: str
    in_the_end: str
    memo: str
    receipt: Any
    records: list[Any]
    chat: list[dict[str, Any]]
    events: list[Any]

    @property
    def cell(self) -> tuple[str, ...]:
        return (self.begun, self.outcome, self.calls, self.in_the_end, self.memo)


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("pause_and_redirect", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def counts(analyst: Any) -> str:
    """How often each step was begun, such as 1100."""
    begun = Counter(analyst.begun)
    return "".join(str(begun[name]) for name in NAMES.values())


def calls_of(handle: Handle, name: str) -> str:
    """What the history says of the calls of a step."""
    entries = [e for e in handle.call.history.entries if e.role == "tool" and e.call.name == name]
    return " ".join(entry.outcome for entry in entries) or "-"


def memo_of(analyst: Any) -> str:
    [(region, top)] = analyst.memos  # it is written once, whatever happens
    assert len(analyst.memos[region, top]) <= top
    return f"{region or 'all'} {top}"


async def use(handle: Handle, verb: str) -> Any:
    if verb != "pause":
        return handle.redirect("top 10 only") if verb == "redirect" else handle.cancel()
    receipt = handle.pause()
    with trio.fail_after(3.5):
        await receipt.settled
    await trio.sleep(60)
    assert handle.snapshot().state == "paused"
    handle.resume("only EU")
    return receipt


async def worked(example: Any, verb: str, at_s: float, step: str) -> Outcome:
    """Let the agent work, use a verb, and tell it something afterwards."""
    analyst = example.Analyst(2.0)
    async with open_agent(example.agent(analyst), name="analyst") as handle:
        feed = handle.subscribe()
        handle.send_input("Write a memo.")
        await trio.sleep(at_s)
        receipt = await use(handle, verb)
        await trio.sleep(60)
        begun, calls = counts(analyst), calls_of(handle, NAMES[step])
        asked = len(handle.call.history)
        handle.send_input("Go on, please.")
        await trio.sleep(60)
        assert handle.snapshot().state == "idle"
        last = handle.call.history.entries[-1]
        assert last.role == "agent"
        assert last.heard.startswith("There is a memo")
        assert len(handle.call.history) > asked
        in_the_end, memo = counts(analyst), memo_of(analyst)
        records = list(handle.call.history.interruptions)
        chat = ConversationContext(entries=handle.call.history.entries).as_chat()
        handle.shutdown()
        events = [message.event async for message in feed]
    ends = [event.outcome for event in events if isinstance(event, AnswerEnded)]
    return Outcome(begun, ends[0], calls, in_the_end, memo, receipt, records, chat, events)


@pytest.mark.parametrize(
    ("verb", "step", "when", "expected"),
    [(*case[:3], case[3:]) for case in CASES],
    ids=[" ".join(case[:3]) for case in CASES],
)
async def test_a_verb_at_a_step(example, autojump_clock, verb, step, when, expected):
    """What was finished never runs again, one memo is written, and the agent answers on."""
    expected = list(expected)
    expected[2] = " ".join(WORDS.get(word, word) for word in expected[2].split())
    came = await worked(example, verb, AT_S[step][when], step)
    assert came.cell == tuple(expected)
    assert came.receipt.accepted
    assert came.receipt.settled
    assert [(record.answer, record.verb) for record in came.records] == [(1, verb)]
    called = [call["id"] for message in came.chat for call in message.get("tool_calls", ())]
    assert [m["tool_call_id"] for m in came.chat if m["role"] == "tool"] == called


def test_there_are_36_cases():
    """Three verbs, four steps, before, amid and after each."""
    assert len({tuple(case[:3]) for case in CASES}) == len(CASES) == 36


@pytest.mark.parametrize("step", AT_S)
@pytest.mark.parametrize("when", ["before", "mid", "after"])
async def test_no_step_starts_after_a_cancel(example, autojump_clock, step, when):
    """Once a cancel is accepted nothing begins; scoring may finish, and the receipt says so."""
    analyst = example.Analyst(2.0)
    async with open_agent(example.agent(analyst)) as handle:
        handle.send_input("Write a memo.")
        await trio.sleep(AT_S[step][when])
        begun, promised = list(analyst.begun), handle.describe("cancel")
        receipt = handle.cancel()
        assert receipt.accepted
        await receipt.settled
        assert trio.current_time() <= AT_S[step][when] + 3.0
        await trio.sleep(60)
        assert analyst.begun == begun
        goes_on = [still.tool for still in receipt.still_running]
        assert goes_on == (["score_churn"] if (step, when) == ("score", "mid") else [])
        assert ("score_churn may finish, at most 3 s" in promised) == bool(goes_on)
        stopped = [one.tool for one in receipt.stopped]
        assert stopped == ([NAMES[step]] if when == "mid" and step != "score" else [])


async def test_the_note_of_a_resume_reaches_the_model(example, autojump_clock):
    """It stands in the history with the step at which the work went on."""
    analyst = example.Analyst(2.0)
    async with open_agent(example.agent(analyst)) as handle:
        handle.send_input("Write a memo.")
        await trio.sleep(AT_S["join"]["mid"])
        await use(handle, "pause")
        await trio.sleep(30)
        notes = [e.content for e in handle.call.history.entries if e.role == "note"]
        assert notes == ["resumed at step 4: + only EU"]
        regions = {analyst.customers[name] for name in analyst.memos["EU", 60]}
        assert regions == {"EU"}


@pytest.mark.parametrize(
    ("at_s", "step", "memo"), [(7.4, "score_churn", "all 10"), (10.2, "write_memo", "all 60")]
)
async def test_what_ends_while_the_next_answer_begins_is_not_done_twice(
    example, autojump_clock, at_s, step, memo
):
    """A step that may finish, or is amid its effect, does so; the next answer takes its result."""
    analyst = example.Analyst(2.0)
    async with open_agent(example.agent(analyst)) as handle:
        handle.send_input("Write a memo.")
        await trio.sleep(at_s)
        receipt = handle.redirect("top 10 only")
        assert [still.tool for still in receipt.still_running] == [step]
        await trio.sleep(30)
        assert counts(analyst) == "1111"
        assert memo_of(analyst) == memo
        said = handle.call.history.entries[-1].heard
        assert ("What you have said since is not in it." in said) == (memo == "all 60")


async def test_in_the_background_it_goes_on_and_tells_once(example, autojump_clock):
    """The agent is free meanwhile, no step runs twice, and the memo is reported at the end."""
    analyst = example.Analyst(2.0)
    async with open_agent(example.agent(analyst)) as handle:
        feed = handle.subscribe()
        handle.send_input("Write a memo.")
        await trio.sleep(AT_S["join"]["mid"])
        example.obey(handle, "background")
        assert (handle.snapshot().state, handle.snapshot().backgrounded) == ("idle", 1)
        await trio.sleep(30)
        assert (handle.snapshot().state, handle.snapshot().backgrounded) == ("idle", 0)
        assert counts(analyst) == "1111"
        handle.shutdown()
        events = [message.event async for message in feed]
    ends = [(event.answer, event.outcome) for event in events if isinstance(event, AnswerEnded)]
    assert ends == [(1, "backgrounded"), (2, "completed")]
    assert len([event for event in events if isinstance(event, ToolCall)]) == 4


async def test_lines_are_obeyed(example, autojump_clock, capsys):
    """A verb is described, used and shown; anything else is said to the agent."""
    async with open_agent(example.agent(example.Analyst(2.0))) as handle:
        handle.send_input("Write a memo.")
        await trio.sleep(1)
        for line in ("pause", "resume only EU", "redirect top 10 only", "cancel", "redirect", ""):
            example.obey(handle, line)
            await trio.sleep(0.1)
        told = capsys.readouterr().out
        assert told.count("accepted>") == 4
        assert "Pause: speech stands still, and no further step starts; " not in told
        said = [e.content for e in handle.call.history.entries if e.role == "user"]
        assert said == ["Write a memo.", "top 10 only", "redirect"]


# --- the program, for real


def test_it_runs_to_its_end_without_anybody():
    """With no input at all it does its four steps and ends."""
    for stdin in (subprocess.DEVNULL, None):
        done = subprocess.run(
            [sys.executable, EXAMPLE, "--step-s", "0.05"],
            stdin=stdin,
            close_fds=True,
            preexec_fn=None if stdin else lambda: os.close(0),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert "== answer 1 is completed" in done.stdout.splitlines()[-1]
        assert done.stderr == ""


def test_it_obeys_what_is_typed():
    """A pause holds it, and it goes on with what the resume adds."""
    program = subprocess.Popen(
        [sys.executable, EXAMPLE, "--step-s", "0.3"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    lines: queue.Queue[str] = queue.Queue()
    reader = threading.Thread(target=lambda: [lines.put(line) for line in program.stdout])
    reader.start()

    def until(words: str) -> None:
        while words not in lines.get(timeout=60):
            pass

    def types(line: str) -> None:
        program.stdin.write(f"{line}\n")
        program.stdin.flush()

    until("-> Join against MRR table")
    types("pause")
    until("(paused)")
    types("resume only EU")
    until("-> Write summary memo {'region': 'EU'}")
    until("customers EU.")
    assert program.wait(timeout=60) == 0  # though nobody has closed its input
    program.stdin.close()
    reader.join()
    program.stdout.close()
