"""A pytest plug-in: says what a project lacks whose async tests pytest cannot run, fails tests in
which the framework itself went wrong, and names the seeds by which a failing test is repeated.

Without ``trio_mode`` pytest refuses an async test before anything of bargein is asked, and names
five plug-ins of which four are of no use here.  A step that the table of states does not have is a
fault of ours, whichever way a test has opened its call, and whatever errors it expects.  pytest
imports this module in each project of the environment, so it imports nothing else of bargein, and
says nothing unless tests have.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

_REFUSALS = (
    "async def functions are not natively supported",
    "no async plugin installed",  # pytest before 8.4 skips them
    "fixture 'autojump_clock' not found",
)
"""What pytest says of an async test that no plug-in takes."""

_MARK = "bargein_cannot_run"

_SEED = "bargein.bridge.testing._seed"
"""The module that keeps the seeds of the calls of a test."""

_STATES = "bargein.bridge.control._call_state"
"""The module that keeps the illegal steps of this process."""


terminal: int | None = None
"""A descriptor of standard error that pytest does not capture, for a test that hangs."""


def pytest_configure() -> None:
    """Keep standard error; pytest captures nothing at this moment."""
    global terminal
    with suppress(OSError):
        terminal = os.dup(2)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Fail a test in which a call made a step that its states do not have."""
    made = getattr(sys.modules.get(_STATES), "illegal_steps", None)
    if made is not None:
        made.clear()
    seed = sys.modules.get(_SEED)
    if seed is not None:
        seed.used.clear()
    outcome = yield
    made = getattr(sys.modules.get(_STATES), "illegal_steps", None)
    if made:
        first = made[0]
        made.clear()
        outcome.get_result()  # type: ignore[attr-defined]  # what the test raised goes first
        raise first


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Mark what pytest could not run, in its report: workers of pytest-xdist send these."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]  # pluggy's Result; -> Generator
    if "bargein.bridge.testing" in sys.modules and not report.passed:
        said = str(report.longrepr)
        seed = sys.modules[_SEED]
        if report.when == "call" and report.failed and seed.used:
            report.sections.append(("bargein", seed.said(seed.used)))
        setattr(report, _MARK, any(refusal in said for refusal in _REFUSALS))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say once, below the failures, what is missing."""
    stats = terminalreporter.stats.values()
    refused = sum(getattr(report, _MARK, False) for reports in stats for report in reports)
    if refused:
        terminalreporter.section("bargein", yellow=True)
        tests = "1 test was not run" if refused == 1 else f"{refused} tests were not run"
        terminalreporter.write_line(f"{tests}: bargein's tests are async and run on trio.")
        if "pytest_trio" not in sys.modules:
            terminalreporter.write_line('  python -m pip install "bargein[testing]"')
        for line in _setting(config):
            terminalreporter.write_line(line)


def _setting(config: pytest.Config) -> list[str]:
    """Return what to write into which file, unless it stands there."""
    if "pytest_trio" in sys.modules and config.getini("trio_mode"):
        return []
    name = config.inipath.name if config.inipath is not None else "pyproject.toml"
    section = {"pyproject.toml": "tool.pytest.ini_options", "setup.cfg": "tool:pytest"}
    return [
        f"  {name}:",
        f"    [{section.get(name, 'pytest')}]",
        "    trio_mode = true",
        "  or, beside tests that run on asyncio, before each test of an agent:",
        "    @pytest.mark.trio",
    ]
