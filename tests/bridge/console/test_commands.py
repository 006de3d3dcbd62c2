"""The commands that a person types, and what a verb did in a line."""

import math

import pytest

from bargein import Receipt
from bargein.bridge.console._receipts import _DONE, not_stopped_line, receipt_line
from bargein.bridge.console._slash_commands import COMMANDS, as_message, read_command
from bargein.bridge.control._receipt import Stopped
from bargein.control import VERBS, StillRunning


@pytest.mark.parametrize(
    "entry", ["hello", "// slash", "//pause", "/usr/bin/python is old", "a /pause", "/", "/ pause"]
)
def test_what_is_no_command(entry):
    """Only a slash and a word is a command: paths and texts are none."""
    assert read_command(entry) is None


@pytest.mark.parametrize(
    ("entry", "name", "text"),
    [
        ("/pause", "pause", ""),
        (" /PAUSE ", "pause", ""),
        ("/resume", "resume", ""),
        ("/resume only the EU", "resume", "only the EU"),
        ("/redirect to\nTokyo", "redirect", "to\nTokyo"),
        ("/stop", "stop", ""),
    ],
)
def test_a_command(entry, name, text):
    """A command has its text."""
    typed = read_command(entry)
    assert (typed.command.name, typed.text) == (name, text)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("/cancle", "there is no command /cancle; did you mean /cancel?"),
        ("/xyz", "There are /pause /resume /redirect /background /cancel /stop /help /quit"),
        ("/redirect", "/redirect needs a text: /redirect TEXT"),
        ("/pause now", "/pause takes no text"),
    ],
)
def test_a_wrong_command(entry, says):
    """A command that does not exist, or lacks its text, tells what there is."""
    assert says in read_command(entry)


def test_a_slash_can_be_said():
    """Two slashes are one."""
    assert as_message("//pause") == "/pause"
    assert as_message("/usr") == "/usr"
    assert {command.verb for command in COMMANDS} - {None} <= set(VERBS)


def receipt(**fields):
    """Return a receipt of a cancel."""
    made = Receipt(1, fields.pop("verb", "cancel"), 1, "tool", fields.pop("reason", ""))
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def test_what_a_verb_did():
    """The line of a verb names what it stopped and what still runs."""
    assert set(_DONE) == set(VERBS)
    stopped = (Stopped("1", "find\x1b[2J"), Stopped("2", "read"))
    still = (StillRunning("3", "pay", "shield", 12.0), StillRunning("4", "bake", "detach"))
    line = receipt_line(receipt(stopped=stopped, still_running=still), 10.0)
    assert line.text == (
        "interrupted; stopped: find, read; "
        "still running: pay (shield, at most 2.0 s), bake (in the background)"
    )
    refused = receipt_line(receipt(verb="emergency_stop", reason="nothing is running"), 10.0)
    assert refused.text == "emergency stop did nothing: nothing is running"


def test_what_could_not_be_stopped():
    """What still runs once a verb has settled is named, but for jobs that are to go on."""
    still = (StillRunning("3", "pay", "shield", 12.0), StillRunning("4", "bake", "detach"))
    settled = receipt(stopped=(Stopped("1", "find"),), still_running=still)
    assert not_stopped_line(settled, frozenset("4")) is None
    assert not_stopped_line(settled, frozenset("134")).text == "could not be stopped: find, pay"
    assert still[1].deadline_s == math.inf
