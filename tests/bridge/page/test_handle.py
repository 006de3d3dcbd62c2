"""The handle in the hands of a person: each verb at each moment, against the real server."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

Meet = Callable[..., Any]

SCENES = {"thinking": "Please ponder", "speaking": "Tell me a story", "tool": "Look in the archive"}
STATE = "document.querySelector('#state').dataset.state"
IS_OPTIMISTIC = """
(id) => {
  document.querySelector(`#${id}`).click();
  return document.querySelector(`#${id}-name`).textContent;
}
"""
LOGIC = """
async (steps) => {
  const { Handle } = await import(new URL("page/agent-verbs.js", document.baseURI));
  const did = [];
  let now = 1000;
  let view = null;
  const handle = new Handle({
    send: (type, fields) => did.push([type, fields.verb ?? fields.request]),
    silence: () => did.push(["silence"]),
    hold: (on) => did.push(["hold", on]),
    show: (shown) => (view = shown),
    note: (text) => did.push(["note", text]),
    questions: () => {},
    asked: () => {},
    now: () => now,
  });
  for (const [name, ...what] of steps) {
    if (name === "wait") now += what[0];
    else handle[name](...what);
  }
  return { did, shown: view.shown, pending: view.pending, still: view.still, title: view.title,
    steps: view.steps.map(({ label, state }) => [label, state]) };
}
"""
IDLE = {
    "answer": 1,
    "phase": "speaking",
    "step": 1,
    "label": "",
    "active_ms": 10,
    "step_list": [],
    "caps": {},
    "backgrounded": 0,
    "permissions": [],
    "verbs": {"barge_in": {"possible": True, "text": ""}},
}
RECEIPT = {
    "id": 4,
    "verb": "cancel",
    "accepted": True,
    "reason": "",
    "phase": "tool",
    "stopped": [{"id": "a", "tool": "find_table"}],
    "still_running": [
        {"id": "b", "tool": "book_table", "policy": "finish", "deadline_ms": 8000},
        {"id": "c", "tool": "pay", "policy": "detach"},
    ],
    "request": "verb-1",
}


def begin(call: Any, moment: str) -> None:
    """Has the agent at work, at a moment."""
    call.type(SCENES[moment])
    call.wait(f"{STATE} === '{moment}'")
    if moment == "speaking":
        call.wait("bargein.log.some((entry) => entry.ev === 'player_position')")
    call.page.locator("#text").blur()


def states(call: Any) -> list[str]:
    """The states that the server has told, in order."""
    told = [e["message"] for e in call.log("message") if e["type"] == "state"]
    return [message["state"] for message in told]


def notes(call: Any) -> list[str]:
    """The transcript's lines about the call."""
    lines: list[str] = call.page.locator(".note").all_inner_texts()
    return lines


def answered(call: Any, text: str) -> None:
    """Types something and waits for its answer: the agent is alive."""
    call.type(text)
    call.wait(
        f"[...document.querySelectorAll('.agent .words')].at(-1)?.innerText.includes({text!r})"
    )


@pytest.mark.parametrize("moment", SCENES)
def test_pause_and_resume(meet: Meet, moment: str) -> None:
    """A pause is shown at once, holds in the server, and a resume goes on from there."""
    call = meet("?raw=1&tap=1")
    begin(call, moment)
    assert call.page.evaluate(IS_OPTIMISTIC, "pause") == "Pausing…"
    held = "pausing" if moment == "tool" else "paused"
    call.wait(f"{STATE} === '{held}'")
    call.wait("document.querySelector('#pause-name').textContent === 'Resume'")
    clock = call.page.inner_text("#task-time")
    if moment == "speaking":
        call.wait("document.querySelector('.tag.held')")
        call.wait("bargein.log.findLast((e) => e.ev.startsWith('out_')).ev === 'out_silent'")
    heard = len(call.log("out_hot"))
    call.page.wait_for_timeout(1200)
    assert len(call.log("out_hot")) == heard
    assert call.page.inner_text("#task-time") == clock
    call.page.keyboard.press("p")
    call.wait(f"{STATE} === '{moment}'")
    assert call.page.locator(".tag.held").count() == 0
    assert [note for note in notes(call) if note.endswith("sumed.") or note == "Paused."] == [
        "Paused.",
        "Resumed.",
    ]
    if moment == "speaking":
        after = call.log("message")[-1]["wall_ms"]
        call.wait(f"bargein.log.some((e) => e.ev === 'player_position' && e.wall_ms > {after})")


@pytest.mark.parametrize("moment", SCENES)
def test_redirect(meet: Meet, moment: str) -> None:
    """What is said in its composer is what the agent does next, and nothing else goes on."""
    call = meet()
    begin(call, moment)
    call.page.keyboard.press("r")
    assert call.page.evaluate("document.activeElement.id") == "redirect-text"
    call.page.keyboard.type("the terrace")
    call.page.keyboard.press("Enter")
    call.wait("document.querySelector('#redirect-form').hidden")
    call.wait(
        "[...document.querySelectorAll('.agent .words')].at(-1)?.innerText"
        ".includes('All right: the terrace')"
    )
    assert call.page.locator(".user .words").all_inner_texts()[-1] == "the terrace"
    [note] = [note for note in notes(call) if note.startswith("Redirected.")]
    assert ("Stopped: search_archive." in note) is (moment == "tool")
    call.wait(f"{STATE} === 'idle'", timeout_s=20)
    assert call.page.is_hidden("#handle")


@pytest.mark.parametrize("moment", SCENES)
def test_cancel(meet: Meet, moment: str) -> None:
    """The work ends as the key has said before, and the agent answers what is said next."""
    call = meet("?raw=1&tap=1")
    begin(call, moment)
    effect = "The work ends" + ("; search_archive is stopped" if moment == "tool" else "")
    call.wait(f"document.querySelector('#cancel-effect').textContent === {effect!r}")
    assert call.page.evaluate(IS_OPTIMISTIC, "cancel") == "Cancelling…"
    call.wait(f"{STATE} === 'idle'")
    call.wait("document.querySelector('#handle').hidden")
    [note] = [note for note in notes(call) if note.startswith("Cancelled.")]
    assert ("Stopped: search_archive." in note) is (moment == "tool")
    if moment == "speaking":
        call.wait("[...document.querySelectorAll('.tag')].at(-1)?.innerText.startsWith('cut at')")
    answered(call, "Good evening")


def test_what_could_not_be_stopped_is_listed(meet: Meet) -> None:
    """A tool in its grace is listed with its deadline until the server says it is over."""
    call = meet()
    call.type("A table for two")
    call.wait("document.querySelector('#task-title').textContent === 'Book table'")
    call.page.click("#steps-toggle")
    rows = call.page.locator("#steps .step").all_inner_texts()
    assert [re.sub(r"\s*(running|done),.*", "", row, flags=re.S).strip() for row in rows] == [
        "Thinking",
        "Find table",
        "Thinking",
        "Book table",
    ]
    assert all(re.search(r"\d+(\.\d)? s$", row) for row in rows)
    assert call.page.inner_text("#task-step") == "step 4"
    assert "1 result is saved" in call.page.inner_text("#cancel-effect")
    call.page.keyboard.press("Escape")
    call.page.keyboard.press("Escape")
    call.wait(f"{STATE} === 'stopping'")
    assert "Still running: book_table." in notes(call)[-1]
    assert re.search(r"book_table\s+may finish, at most [1-8] s", call.page.inner_text("#still"))
    assert call.page.inner_text("#cancel-name") == "Stop now"
    call.page.click("#cancel")
    call.wait(f"{STATE} === 'idle'")
    call.wait("document.querySelector('#handle').hidden")
    assert states(call)[-2:] == ["stopping", "idle"]
    assert re.fullmatch(r"book_table (has completed|was stopped).*\.", notes(call)[-1])


def test_background(meet: Meet) -> None:
    """Work that may go on alone frees the agent, and is counted."""
    call = meet()
    begin(call, "tool")
    assert "comes later" in call.page.inner_text("#background-effect")
    call.page.keyboard.press("b")
    call.wait(f"{STATE} === 'idle'")
    call.wait("!document.querySelector('#jobs').hidden")
    assert call.page.inner_text("#jobs") == "1 job in the background"
    assert "Moved to the background." in notes(call)
    answered(call, "Good evening")


def test_work_in_the_background_is_ended(meet: Meet) -> None:
    """A key beside its count does that, while the agent has nothing else to do."""
    call = meet()
    begin(call, "tool")
    assert call.page.locator("#end-jobs").is_hidden()
    call.page.keyboard.press("b")
    call.wait(f"{STATE} === 'idle'")
    call.page.click("#end-jobs")
    call.wait("document.querySelector('#jobs').hidden")
    call.wait("document.querySelector('#transcript').innerText.includes('desk was stopped')")
    assert any(note.startswith("Cancelled. Stopped: ") for note in notes(call))
    assert call.page.locator("#end-jobs").is_hidden()
    answered(call, "Good evening")


def test_esc_stops_only_what_is_said(meet: Meet) -> None:
    """One Esc silences the agent and cancels nothing more; a typed text is not lost by it."""
    call = meet("?raw=1&tap=1")
    begin(call, "speaking")
    call.page.fill("#text", "half a sen")
    call.page.press("#text", "Escape")
    call.wait("[...document.querySelectorAll('.tag')].at(-1)?.innerText.startsWith('cut at')")
    call.wait("document.querySelector('#handle').hidden")
    assert call.page.input_value("#text") == "half a sen"
    sent = [e for e in call.sent if isinstance(e, str) and '"control"' in e]
    assert ['"barge_in"' in each for each in sent] == [True]


def run(page: Any, *steps: Any) -> dict[str, Any]:
    """Runs a handle that knows no document; returns what it did and what it shows."""
    result: dict[str, Any] = page.evaluate(LOGIC, list(steps))
    return result


def test_a_pause_that_does_nothing_is_taken_back(bare_page: Any) -> None:
    """The sound stands at once, and goes on when the server refuses the pause, and says why."""
    refused = RECEIPT | {
        "verb": "pause",
        "accepted": False,
        "reason": "superseded_by cancel",
        "stopped": [],
        "still_running": [],
    }
    seen = run(bare_page, ["state", "speaking"], ["use", "pause"], ["receipt", refused])
    assert seen["did"] == [
        ["hold", True],
        ["control", "pause"],
        ["hold", False],
        ["note", "Pause did nothing: cancel is under way."],
    ]
    assert seen["pending"] is None


def test_a_verb_that_is_refused_is_no_longer_under_way(bare_page: Any) -> None:
    """An error of the server that answers a verb is told, and others are not the handle's."""
    error = {"request": "verb-1", "message": "too many"}
    seen = run(bare_page, ["state", "tool"], ["use", "cancel"], ["refused", error])
    assert seen["pending"] is None
    assert seen["did"][-1] == ["note", "The server refused it: too many."]
    seen = run(bare_page, ["use", "cancel"], ["refused", {"request": "verb-9", "message": "no"}])
    assert seen["pending"] == "cancel"


def test_silence_comes_before_the_message(bare_page: Any) -> None:
    """What ends the speech flushes here first, and then tells the server."""
    for verb in ("barge_in", "cancel", "redirect", "emergency_stop"):
        assert run(bare_page, ["use", verb])["did"] == [["silence"], ["control", verb]]
    assert run(bare_page, ["use", "background"])["did"] == [["control", "background"]]


def test_the_same_receipt_is_told_once(bare_page: Any) -> None:
    """Two presses of Cancel have one receipt, one line, and one list of what still runs."""
    again = RECEIPT | {"request": "verb-2"}
    seen = run(
        bare_page,
        ["state", "tool"],
        ["use", "cancel"],
        ["use", "cancel"],
        ["receipt", RECEIPT],
        ["receipt", again],
    )
    lines = [what for name, *what in seen["did"] if name == "note"]
    assert lines == [
        ["Cancelled. Stopped: find_table. Still running: book_table. In the background: pay."]
    ]
    assert [(one["tool"], one["until"]) for one in seen["still"]] == [
        ("book_table", 9000),
        ("pay", None),
    ]


def test_the_list_ends_with_its_tools(bare_page: Any) -> None:
    """A tool leaves the list with its result, and the rest when the server says all is settled."""
    start = [["state", "tool"], ["use", "cancel"], ["receipt", RECEIPT], ["state", "idle"]]
    ended = ["toolEnded", {"id": "b", "outcome": "completed_after_interrupt"}]
    seen = run(bare_page, *start)
    assert seen["shown"] is True
    seen = run(bare_page, *start, ended)
    assert [one["tool"] for one in seen["still"]] == ["pay"]
    seen = run(bare_page, *start, ["settled", {"id": 4}])
    assert (seen["still"], seen["shown"]) == ([], False)
    assert seen["did"][-1] == ["note", "book_table has ended."]


def test_work_in_the_background_is_not_said_to_have_ended(bare_page: Any) -> None:
    """A verb is settled while a tool that it sent to the background continues."""
    start = [["state", "tool"], ["use", "cancel"], ["receipt", RECEIPT]]
    ended = ["toolEnded", {"id": "b", "outcome": "completed_after_interrupt"}]
    seen = run(bare_page, *start, ended, ["settled", {"id": 4}])
    lines = [what for name, *what in seen["did"] if name == "note"]
    assert lines == [
        ["Cancelled. Stopped: find_table. Still running: book_table. In the background: pay."],
        ["book_table has completed all the same."],
    ]


@pytest.mark.parametrize(
    ("outcome", "error", "words"),
    [
        ("completed", False, "book_table has completed."),
        ("completed", True, "book_table has failed."),
        ("completed_after_interrupt", False, "book_table has completed all the same."),
        (
            "effect_unknown",
            False,
            "book_table was stopped; it may have taken effect in part.",
        ),
        ("cancelled_before_effect", False, "book_table was stopped before it had any effect."),
        (
            "timed_out",
            False,
            "book_table took too long and was stopped; it may have taken effect in part.",
        ),
        ("an_outcome_of_later", False, "book_table has ended."),
    ],
)
def test_what_was_still_running_ends_with_how_it_ended(
    bare_page: Any, outcome: str, error: bool, words: str
) -> None:
    """A tool that a receipt left running is told when it ends, once, by what became of it."""
    again = RECEIPT | {"id": 5, "request": "verb-2"}
    seen = run(
        bare_page,
        ["state", "tool"],
        ["use", "cancel"],
        ["receipt", RECEIPT],
        ["use", "emergency_stop"],
        ["receipt", again],
        ["toolEnded", {"id": "b", "outcome": outcome, "error": error}],
        ["settled", {"id": 4}],
        ["settled", {"id": 5}],
    )
    lines = [what for name, *what in seen["did"] if name == "note"]
    assert lines[2:] == [[words]]


@pytest.mark.parametrize(
    ("presses", "verbs"),
    [
        ([["escape"]], ["barge_in"]),
        ([["escape"], ["wait", 1400], ["escape"]], ["barge_in", "cancel"]),
        ([["escape"], ["wait", 1600], ["escape"]], ["barge_in", "barge_in"]),
        (
            [["escape"], ["escape"], ["wait", 100], ["escape"]],
            ["barge_in", "cancel", "barge_in"],
        ),
    ],
)
def test_esc_and_esc_esc(bare_page: Any, presses: list[Any], verbs: list[str]) -> None:
    """The first stops the speech, a second within 1.5 s the work; a third begins anew."""
    heard = [["state", "speaking"], ["audible", True], ["snapshot", IDLE]]
    seen = run(bare_page, *heard, *presses)
    assert [what for name, *what in seen["did"] if name == "control"] == [[v] for v in verbs]


def test_cancelling_again_means_it(bare_page: Any) -> None:
    """While a tool is in its grace, Esc Esc is what its key says: the emergency stop."""
    again = [["wait", 5000], ["escape"], ["escape"]]
    start = [["state", "tool"], ["escape"], ["escape"], ["receipt", RECEIPT], *again]
    did = run(bare_page, *start)["did"]
    assert [verb for name, *verb in did if name == "control"] == [["cancel"], ["emergency_stop"]]


def test_esc_leaves_what_may_not_be_cut(bare_page: Any) -> None:
    """Speech that no caller may cut is not flushed here either."""
    firm = IDLE | {"verbs": {"barge_in": {"possible": False, "text": ""}}}
    seen = run(bare_page, ["state", "speaking"], ["audible", True], ["snapshot", firm], ["escape"])
    assert seen["did"] == []


def test_steps_of_a_cut_answer_stay_until_it_is_over(bare_page: Any) -> None:
    """While what was cut ends, its steps are still shown, with what becomes of them."""
    steps = [
        {"tool": "", "id": "", "state": "done", "elapsed_ms": 300},
        {"tool": "book_table", "id": "b", "state": "running", "elapsed_ms": 900},
    ]
    before = IDLE | {"step_list": steps, "phase": "tool", "label": "book_table"}
    after = {key: value for key, value in IDLE.items() if key != "answer"} | {"phase": "stopping"}
    cut = [["state", "tool"], ["snapshot", before], ["state", "stopping"], ["snapshot", after]]
    seen = run(bare_page, *cut)
    assert seen["steps"] == [["Thinking", "done"], ["Book table", "running"]]
    ended = ["toolEnded", {"id": "b", "outcome": "effect_unknown"}]
    assert run(bare_page, *cut, ended)["steps"][1] == ["Book table", "stopped"]
    assert run(bare_page, *cut, ended, ["state", "idle"])["steps"] == []


def test_an_agent_that_cannot_hear_says_so(meet: Meet) -> None:
    """A notice says that its ears have failed, and goes when they hear again."""
    call = meet()
    call.type("Please go deaf")
    call.wait("document.querySelector('#notice').dataset.id === 'deaf'")
    assert "The agent cannot hear you" in call.page.inner_text("#notice")
    assert "typing" in call.page.inner_text("#notice")
    answered(call, "Are you there?")
    assert call.page.is_visible("#notice")
    call.type("Now hear again")
    call.wait("document.querySelector('#notice').hidden")


def test_a_call_that_is_over_takes_no_verb(bare_page: Any) -> None:
    """Nothing is sent any more, and nothing is shown."""
    seen = run(bare_page, ["state", "tool"], ["close"], ["use", "cancel"], ["escape"])
    assert (seen["did"], seen["shown"]) == ([], False)
