"""What happens in a call, as lines."""

from __future__ import annotations

from typing import get_args

import pytest

from bargein.bridge.console._lines import Line, encodable, seconds
from bargein.bridge.console._narrator import _OUTCOMES, Narrator, arguments_text
from bargein.control import ToolOutcome
from bargein.events import (
    AgentError,
    AgentHandoff,
    AgentResponse,
    AgentSpeechCut,
    CallEnded,
    CapWarning,
    InputReturned,
    JobFinished,
    PermissionAnswered,
    QuestionClosed,
    StateChanged,
    ToolCall,
    ToolOutput,
    ToolProgress,
    ToolResult,
    TurnEnded,
    UserTranscriptionReceived,
)


class Shown:
    """A display that keeps what it is given."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def show(self, line: Line) -> None:
        self.told.append(line.prefix + line.text)

    def write(self, text: str) -> None:
        self.told.append(f"+{text}")

    def end(self) -> None:
        self.told.append(".")

    def refresh(self) -> None:
        pass


def told(*events: object, live: bool = True, voice: bool = False) -> list[str]:
    """Return what is told of events."""
    shown = Shown()
    narrator = Narrator(shown, live=live, voice=voice)
    for event in events:
        narrator.take(event)
    return shown.told


CALL = ToolCall(id="1", name="find\x1b[2J", arguments={"where": "a\nb\x9b2J", "n": 3})


def test_every_outcome_has_words():
    """There is a line for each outcome of a tool."""
    assert set(_OUTCOMES) == set(get_args(ToolOutcome))


@pytest.mark.parametrize("outcome", get_args(ToolOutcome))
def test_a_tool_that_ends(outcome):
    """The line of a tool has its name, arguments, outcome and time."""
    result = ToolResult(id="1", name="find", outcome=outcome, ran_s=1.25)
    [line] = told(CALL, result)
    mark, _, words = _OUTCOMES[outcome]
    middle = f" · {words}" if words else ""
    assert line == f'{mark}find(where="a\\nb", n=3){middle} · 1.2 s'


def test_a_tool_that_fails():
    """A tool that raised is told with its words, on one line."""
    result = ToolResult(id="1", name="find", content="no\nsuch \x1b[1mplace", error=True)
    assert told(CALL, result) == ['✗ find(where="a\\nb", n=3) · failed: no such place · 0.0 s']


def test_progress_is_kept_for_the_status():
    """What a tool tells on its way is kept, the last line of it."""
    narrator = Narrator(Shown(), live=True)
    narrator.take(CALL)
    narrator.take(ToolProgress(id="1", name="find", text="half", fraction=0.5))
    assert narrator.tools["1"].progress == "50% half"
    narrator.take(ToolOutput(id="1", name="find", text="one\ntwo\x1b[K\n"))
    assert narrator.tools["1"].progress == "two"
    narrator.take(ToolOutput(id="1", name="find", text="\n"))
    assert narrator.tools["1"].progress == "two"
    narrator.take(ToolOutput(id="other", name="unknown", text="x"))
    narrator.take(ToolResult(id="1", name="find"))
    assert narrator.tools == {}


def test_without_a_status_a_tool_is_told_at_its_start():
    """Where lines only follow each other, the call of a tool is one."""
    assert told(CALL, live=False) == ['→ find(where="a\\nb", n=3)']


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (AgentResponse(content="a\x1b[2Jb"), ["+ab"]),
        (AgentError(message="it broke\x07"), ["✗ it broke"]),
        (AgentHandoff(target="billing"), ["→ billing takes over"]),
        (CapWarning(turn=1, which="tool_calls", used=8, limit=10), ["! 8 of 10 tool calls used"]),
        (InputReturned(content="and tea"), ["■ not answered: “and tea”"]),
        (JobFinished(id="1", name="bake", content=""), [".", "✓ bake is done, in the background"]),
        (
            JobFinished(id="1", name="bake", content="", error=True),
            [".", "✗ bake failed, in the background"],
        ),
        (PermissionAnswered(id="1", name="pay", verdict="withdrawn"), ["? pay no longer asks"]),
        (PermissionAnswered(id="1", name="pay", verdict="allowed"), []),
        (QuestionClosed(id="1", name="pay", outcome="withdrawn"), ["? pay no longer asks"]),
        (QuestionClosed(id="1", name="pay", outcome="timed_out"), ["? nobody has answered"]),
        (QuestionClosed(id="1", name="pay", outcome="answered"), []),
        (TurnEnded(turn=1, agent="a", outcome="completed"), ["."]),
        (
            TurnEnded(turn=1, agent="a", outcome="capped", capped="wall_s"),
            [".", "■ stopped at its cap on seconds"],
        ),
        (CallEnded(reason="ended"), []),
        (CallEnded(reason="agent_ended"), ["■ the call is over: agent_ended"]),
        (StateChanged(state="idle", number=1), []),
        (UserTranscriptionReceived(content="typed"), []),
        (
            AgentSpeechCut(utterance=1, heard="a", unheard=" b c", at_ms=1.0, basis="words"),
            ["■ never heard: “b c”"],
        ),
        (AgentSpeechCut(utterance=1, heard="a", unheard="", at_ms=1.0, basis="words"), []),
    ],
)
def test_what_is_told(event, lines):
    """Each event has its line, or none."""
    assert told(event) == lines


def test_what_is_said_by_voice_is_shown():
    """The words of a caller that speaks are shown once they are final."""
    said = [
        UserTranscriptionReceived(content=text, final=text == "hello") for text in ("he", "hello")
    ]
    assert told(*said, voice=True) == ["> hello"]


def test_arguments_that_are_no_json():
    """Arguments are shown as they are, whatever they are."""
    loop: list = []
    loop.append(loop)
    assert arguments_text({"a": {1, 2} - {2}, "b": loop}) == 'a="{1}", b=[[...]]'


def test_durations_and_marks():
    """Durations are short, and marks have a form in ASCII."""
    assert [seconds(value) for value in (0, 59.94, 61, 3_725)] == [
        "0.0 s",
        "59.9 s",
        "1:01",
        "1:02:05",
    ]
    assert encodable("→ done · 1 s …", "ascii") == "-> done - 1 s ..."
    assert encodable("日本", "ascii") == "??"
    assert encodable("→", "utf-8") == "→"
