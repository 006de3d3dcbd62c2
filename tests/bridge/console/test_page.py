"""The page about the console is true: its session and its pipes are those of the program."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "console.md").read_text()


def block(language, first=""):
    """Return a block of the page."""
    [found] = re.findall(rf"^```{language}\n({first}.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return found


@pytest.fixture
def clerk(folder):
    """The reader's file."""
    (folder / "clerk.py").write_text(block("python", "# clerk.py"))


@pytest.mark.usefixtures("clerk")
def test_the_session(open_chat):
    """The session on the page is what the window shows."""
    tty = open_chat(target="clerk.py:app", columns=80, rows=20)
    tty.type("a table\r")
    tty.until("On which day?")
    tty.type("a table on Friday\r")
    tty.until("May book(table=7) run?")
    tty.type("y\r")
    tty.until("Table 7 is yours.")
    tty.type("a table on Sunday\r")
    tty.until('find_table(day="Sunday") · ')
    tty.type("\x1b")
    tty.until("cancelled before")
    on_page = re.sub(r"\d+\.\d s", "# s", block("text").strip())
    assert tty.settled() == on_page


@pytest.mark.proof
@pytest.mark.usefixtures("clerk")
def test_the_pipes(folder, environment):
    """The commands with pipes and files give what the page shows."""
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block("console"), re.MULTILINE)
    assert len(commands) == 4
    for command, output in commands:
        result = subprocess.run(
            ["bash", "-c", command.replace("python ", f"{sys.executable} ")],
            cwd=folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert result.stdout == output, result.stderr
