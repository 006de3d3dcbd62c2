"""What the console tells: of events, commands, warnings, and what others print."""

import os
import stat
from typing import get_args

import pytest

from bargein.control import ToolOutcome

EVENTS = [
    ("ToolCall(id='1', name='find\\x1b[2J', arguments={'where': 'a\\nb\\x9b2J', 'n': 3})",
     '→ find\ufffd[2J(where="a\\nb", n=3)'),
    ("ToolProgress(id='1', name='find', text='half', fraction=0.5)", None),
    ("ToolResult(id='1', name='find', outcome='completed', ran_s=1.25)",
     '✓ find\ufffd[2J(where="a\\nb", n=3) · 1.2 s'),
    ("ToolCall(id='2', name='look', arguments={})", "→ look()"),
    ("ToolResult(id='2', name='look', content='no\\nsuch \\x1b[1mplace', error=True)",
     "✗ look() · failed: no such \ufffd[1mplace · 0.0 s"),
    ("AgentError(message='it broke\\x07')", "✗ it broke\ufffd"),
    ("CapWarning(answer=1, which='tool_calls', used=8, limit=10)", "! 8 of 10 tool calls used"),
    ("InputReturned(content='and tea')", "■ not answered: “and tea”"),
    ("JobFinished(id='1', name='bake', content='')", "✓ bake is done, in the background"),
    ("JobFinished(id='1', name='bake', content='', error=True)",
     "✗ bake failed, in the background"),
    ("JobFinished(id='1', name='bake', content='', outcome='effect_unknown', ended='stopped')",
     "✗ bake stopped; it may have partially executed, in the background"),
    ("JobFinished(id='1', name='bake', content='', outcome='effect_unknown', ended='capped')",
     "✗ bake stopped at its cap, in the background"),
    ("PermissionAnswered(id='1', name='pay', verdict='withdrawn')", "? pay no longer asks"),
    ("PermissionAnswered(id='1', name='pay', verdict='allowed')", None),
    ("QuestionClosed(id='1', name='pay', outcome='withdrawn')", "? pay no longer asks"),
    ("QuestionClosed(id='1', name='pay', outcome='timed_out')", "? nobody has answered"),
    ("QuestionClosed(id='1', name='pay', outcome='answered')", None),
    ("AnswerEnded(answer=9, agent='a', outcome='capped', capped='wall_s')",
     "■ stopped at its cap on seconds"),
    ("AgentSpeechCut(utterance=9, heard='a', unheard=' b c', at_ms=1.0, basis='words')",
     "■ never heard: “b c”"),
    ("AgentSpeechCut(utterance=9, heard='a', unheard='', at_ms=1.0, basis='words')", None),
    ("AgentHandoff(target='billing')", "→ billing takes over"),
]  # fmt: skip


def agent(body):
    """Return the file of an agent that does something when it is spoken to."""
    return f"""
import threading
import structlog
import trio
from bargein import App
from bargein.events import *

async def answer(call):
    call.bridge(name="billing")
    agent = call.bridge(name="agent")
    def tell(message):
{body}
    agent.on(UserStoppedSpeaking).map(tell)

app = App(answer)
"""


@pytest.fixture
def told(run_chat, folder):
    """Run an agent that does something, and return the lines that are told, and the log."""

    def run(*statements, **options):
        lines = "\n".join(f"        {statement}" for statement in statements)
        (folder / "tells.py").write_text(agent(lines))
        result = run_chat("hello\n", target="tells:app", **options)
        first, *lines, log = result.stderr.splitlines()
        assert first == "> hello"
        assert log.startswith("  log: ")
        return [*filter(None, lines)], log.removeprefix("  log: ")

    return run


def test_each_event_has_its_line_or_none(told):
    """Of what reaches the caller, one line each, with nothing in it that a terminal would obey."""
    lines, _ = told(*(f"agent.publish({event})" for event, _ in EVENTS))
    assert lines == [line for _, line in EVENTS if line is not None]


OUTCOMES = {
    "not_started": "✗ find() · not started · 1.2 s",
    "cancelled_before_effect": "✗ find() · cancelled before it had any effect · 1.2 s",
    "effect_unknown": "✗ find() · stopped; it may have partially executed · 1.2 s",
    "completed": "✓ find() · 1.2 s",
    "completed_after_interrupt": "✓ find() · completed after the interrupt · 1.2 s",
    "backgrounded": "→ find() · continues in the background · 1.2 s",
    "timed_out": "✗ find() · took too long; it may have partially executed · 1.2 s",
    "denied": "✗ find() · denied · 1.2 s",
    "withdrawn": "✗ find() · withdrawn; it did not run · 1.2 s",
}


def test_each_outcome_of_a_tool_has_its_line(told):
    """The line of a tool that ended has its name, what became of it, and its time."""
    assert set(OUTCOMES) == set(get_args(ToolOutcome))
    lines, _ = told(
        f"for outcome in {list(OUTCOMES)}:",
        "    agent.publish(ToolCall(id='1', name='find', arguments={}))",
        "    agent.publish(ToolResult(id='1', name='find', outcome=outcome, ran_s=1.25))",
    )
    assert [line for line in lines if line != "→ find()"] == list(OUTCOMES.values())


def test_warnings_are_told_in_words(told):
    """Logs go to the file; warnings are told too, cleaned, without what people said."""
    lines, log = told(
        "log = structlog.get_logger()",
        "log.info('verb_used', verb='cancel')",
        "log.warning('odd\\x1b[2J_thing', pii_words='secret')",
        "log.warning('tool_abandoned', tool='pay')",
        "log.warning('chain_goes_nowhere', route='.stream(talk)', hint='add .broadcast()')",
        "log.error('stage_failed')  # an event tells it",
        "threading.Thread(target=lambda: log.warning('from_a_thread')).start()",
    )
    assert lines == [
        "! odd thing",
        "! pay does not stop; bargein no longer waits for it, and it may still run",
        "! chain goes nowhere",
        "  .stream(talk)",
        "  add .broadcast()",
        "! from a thread",
    ]
    with open(log) as file:
        written = file.read()
    assert '"verb_used"' in written
    assert "secret" not in written
    assert not stat.S_IMODE(os.stat(log).st_mode) & 0o077


def test_an_exception_is_told_whole(told):
    """The developer reads what it says, and the line that raised it, below the warning."""
    lines, _ = told(
        "try:",
        "    raise KeyError('tea')",
        "except KeyError:",
        "    structlog.get_logger().exception('sink_failed')",
    )
    assert lines[:3] == ["! sink failed", "  KeyError", "  'tea'"]
    assert "tells.py" in lines[3]
    assert "raise KeyError('tea')" in lines[3]


def test_a_log_without_a_place(told):
    """Where the user's folder cannot be written to, there is no log, and that is no error."""
    _, log = told("pass", env={"XDG_STATE_HOME": "/dev/null"})
    assert log == "none; name a file with --log"


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("/cancle", "there is no command /cancle; did you mean /cancel?"),
        ("/xyz", "There are /resume /pause /background /redirect /cancel /stop /help /quit"),
        ("/redirect", "/redirect needs a text: /redirect TEXT"),
        ("/pause now", "/pause takes no text"),
        ("/stop", "emergency stop did nothing: nothing is running"),
    ],
)
def test_a_wrong_command(run_chat, entry, says):
    """A command that does not exist, lacks its text, or has nothing to act on, says so."""
    assert says in run_chat(f"{entry}\n").stderr


@pytest.mark.parametrize("entry", ["// slash", "//pause", "/usr/bin is old", "a /pause", "/ pause"])
def test_what_is_no_command(run_chat, entry):
    """Only a slash and a word is a command: paths and texts are said, two slashes are one."""
    said = " ".join(entry.replace("//", "/", 1).split())
    assert run_chat(f"{entry}\n").stdout == f"You said: {said}\n"


def test_entries_wait_for_their_turn(run_chat):
    """What is entered while the agent works waits, and is then sent in order."""
    assert run_chat("bake\none\n   \ntwo\n").stdout == (
        "It says: baked\nYou said: one\nYou said: two\n"
    )


SEATS = """
from bargein import App, ChatNode
from bargein.testing import ScriptedModel, calls
from bargein.tools import ToolContext, tool

@tool
async def seat(context: ToolContext) -> str:
    answer = await context.ask("Where to sit?", choices=["window", "aisle"])
    print("took", answer.choice or answer.outcome)
    return "done"

async def answer(call):
    call.converse(ChatNode(ScriptedModel(calls("seat"), "Here.", then="Yes?"), tools=[seat]))

app = App(answer)
"""


@pytest.mark.parametrize("line", ["2", "the aisle", "aisle"])
def test_a_tools_question_is_answered_by_the_next_line(run_chat, folder, line):
    """By its number or its words; the line after it is said."""
    (folder / "seats.py").write_text(SEATS)
    result = run_chat(f"seat me\n{line}\nhello\n", target="seats:app")
    assert "? Where to sit?\n  1 window\n  2 aisle\n" in result.stderr
    assert "took aisle\n" in result.stderr
    assert result.stdout == "Where to sit? Here.\nYes?\n"


def test_the_end_of_the_input_answers_no_question(run_chat, folder):
    """Nobody is there to answer: that is told, and is no success."""
    (folder / "seats.py").write_text(SEATS)
    result = run_chat("seat me\n", target="seats:app", code=1)
    assert "! nobody answers: Where to sit?" in result.stderr
    assert "took aisle" not in result.stderr


def test_a_long_conversation_is_shown_from_its_end(run_chat):
    """Of what was said before, the last entries are shown, and how many came before."""
    options = ("--conversations", "mine.db", "--conversation", "notes")
    run_chat("".join(f"said {number}\n" for number in range(15)), *options)
    told = run_chat("", *options).stderr.splitlines()
    assert told[0] == "… 20 earlier entries"
    assert told[1:11] == [
        line
        for number in range(10, 15)
        for line in (f"> said {number}", f"You said: said {number}")
    ]
