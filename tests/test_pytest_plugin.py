"""The plug-in that says what a project lacks whose async tests pytest cannot run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests import forking

ROOT = Path(__file__).parents[1]

OURS = """
from bargein.testing import open_call

async def answer(call):
    call.say("Hello")

async def test_it_greets(autojump_clock):
    async with open_call(answer) as caller:
        await caller.quiet()
    assert caller.heard == "Hello"
"""

OTHERS = """
async def test_something():
    pass
"""


@pytest.fixture
def run_pytest(tmp_path):
    """Run pytest in a folder of its own, with the plug-in; a checkout need not be installed."""

    def run(source, *options, settings=""):
        (tmp_path / "test_agent.py").write_text(source)
        if settings:
            (tmp_path / "pytest.ini").write_text(settings)
        installed = any(point.name == "bargein" for point in entry_points(group="pytest11"))
        plugin = [] if installed else ["-p", "bargein._pytest_plugin"]
        arguments = ["-p", "no:cacheprovider", *plugin, *options]
        env = {"PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
        ran = forking.run("pytest", arguments, cwd=tmp_path, env=env)
        return ran.returncode, ran.stdout + ran.stderr

    return run


def test_a_missing_trio_mode_is_answered(run_pytest):
    """It says how many tests were not run, and what to write into which file."""
    code, said = run_pytest(OURS)
    assert code == 1
    assert "1 test was not run" in said
    assert "  pyproject.toml:\n    [tool.pytest.ini_options]\n    trio_mode = true\n" in said
    assert "before each test of an agent:\n    @pytest.mark.trio\n" in said
    assert "pip install" not in said


def test_a_mark_runs_a_test_on_trio_where_others_run_on_asyncio(run_pytest):
    """As in a suite that has asyncio tests of its own, which trio_mode would break."""
    marked = "import pytest\n" + OURS.replace("async def test", "@pytest.mark.trio\nasync def test")
    theirs = "import asyncio\n\ndef test_theirs():\n    asyncio.run(asyncio.sleep(0))\n"
    code, said = run_pytest(marked + theirs, "--strict-markers", settings="[pytest]\n")
    assert code == 0, said
    assert "2 passed" in said


def test_it_names_the_file_that_there_is(run_pytest):
    """A project with a pytest.ini has its own section for the setting."""
    _, said = run_pytest(OURS, settings="[pytest]\naddopts = -ra\n")
    assert "  pytest.ini:\n    [pytest]\n    trio_mode = true\n" in said


@pytest.mark.proof
def test_it_hears_of_the_tests_of_workers(run_pytest):
    """With pytest-xdist other processes run the tests, and one tells what is missing."""
    code, said = run_pytest(OURS, "-n", "1")
    assert code == 1
    assert said.count("trio_mode = true") == 1


def test_a_missing_pytest_trio_is_answered(run_pytest):
    """Without the plug-in that runs async tests, the extra that brings it is named."""
    code, said = run_pytest(OURS, "-p", "no:trio")
    assert code == 1
    assert 'pip install "bargein[testing]"' in said
    assert "trio_mode = true" in said


@pytest.mark.proof
def test_it_is_silent_where_tests_run(run_pytest):
    """Nothing is said of tests that pass, and nothing of those that fail for another reason."""
    code, said = run_pytest(OURS, "-o", "trio_mode=true")
    assert code == 0, said
    assert "=== bargein" not in said
    failing = OURS.replace('== "Hello"', '== "Goodbye"')
    code, said = run_pytest(failing, "-o", "trio_mode=true")
    assert code == 1
    assert "=== bargein" not in said


@pytest.mark.proof
def test_it_is_silent_in_projects_of_others(run_pytest):
    """Where no test imports bargein.testing, async tests are nobody's business here."""
    code, said = run_pytest(OTHERS)
    assert code == 1
    assert "=== bargein" not in said


def test_it_imports_nothing_else():
    """pytest loads it in every project of the environment, which must not cost anything."""
    code = "import sys, bargein._pytest_plugin; print({'trio', 'pydantic'} & set(sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == "set()"


ILLEGAL = """
import trio
from bargein import App, open_agent
from bargein.bridge.control._call_state import TABLE
from bargein.events import AgentResponse, StateChanged, UserStoppedSpeaking
from bargein.testing import open_call

class Node:
    async def generate(self, message):
        yield AgentResponse(content="Hello")

async def answer(call):
    call.converse(Node())

async def test_agent(autojump_clock, monkeypatch):
    monkeypatch.setitem(TABLE, "idle", TABLE["idle"]._replace(never=("thinking",)))
    async with open_agent(Node()) as handle:
        handle.send_input("hello")
        await trio.sleep(1)
        assert handle.snapshot().state == "idle"
        assert handle.snapshot().number == 0

async def test_call(autojump_clock, monkeypatch):
    monkeypatch.setitem(TABLE, "idle", TABLE["idle"]._replace(never=("thinking",)))
    async with open_call(answer, expect_errors=True) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()

class Line:
    audio, sample_rate_hz = False, 24_000
    send = play = clear = lambda *args: None

async def test_app(autojump_clock, monkeypatch):
    monkeypatch.setitem(TABLE, "idle", TABLE["idle"]._replace(never=("thinking",)))
    async with App(answer).open_call(Line()) as call:
        call.publish(UserStoppedSpeaking())
        await trio.sleep(1)

async def test_sound(autojump_clock):
    async with open_agent(Node()) as handle:
        handle.send_input("hello")
        await trio.sleep(1)
"""


def test_an_illegal_step_fails_its_test(run_pytest):
    """However a call was opened, whatever errors are expected: no step is made past the table."""
    code, said = run_pytest(ILLEGAL, settings="[pytest]\ntrio_mode = true\n")
    assert code == 1
    assert "3 failed, 1 passed" in said
    raised = [
        line for line in said.splitlines() if line.startswith("E ") and "IllegalStepError" in line
    ]
    assert len(raised) == 3
    assert all("no step from state 'idle' to 'thinking'" in line for line in raised)


FAILS = """
from bargein.testing import open_call

async def answer(call):
    call.say("Hello")

async def test_it_waits(autojump_clock):
    async with open_call(answer) as caller:
        await caller.quiet()
    assert caller.heard == "Goodbye"

async def test_it_repeats(autojump_clock):
    async with open_call(answer, seed=7), open_call(answer):
        pass
    async with open_call(answer, seed=8):
        pass
    assert False

async def test_it_holds(autojump_clock):
    async with open_call(answer):
        pass
"""


def test_a_failing_test_names_the_seeds_of_its_calls(run_pytest):
    """Below each failure stand the seeds to use again, also if the assertion follows the call."""
    code, said = run_pytest(FAILS, settings="[pytest]\ntrio_mode = true\n")
    assert code == 1
    assert "2 failed, 1 passed" in said
    drawn, given = re.findall(r"^The order of tasks .*$", said, re.MULTILINE)
    assert re.fullmatch(r"The order of tasks was that of seed=\d+, which repeats it\.", drawn)
    assert "in the calls of this test was that of seed=7, seed=8, which repeat it" in given
