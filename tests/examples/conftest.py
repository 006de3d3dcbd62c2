"""Loads the examples, which are not a package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import trio

from bargein import AgentEntry
from bargein.testing import Caller

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(request, monkeypatch) -> ModuleType:
    """The example that a test file is named after."""
    path = EXAMPLES / f"{request.path.stem.removeprefix('test_')}.py"
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


async def say(caller: Caller, text: str) -> str:
    """Say something, wait for the answer, and return what was heard."""
    before = len(caller.call.history)
    await caller.says(text, takes_s=1.0)
    await caller.quiet()
    return heard(caller, before)


def heard(caller: Caller, after: int = 0) -> str:
    """Return what was heard of the agents, one line for each answer."""
    entries = caller.call.history.entries[after:]
    return "\n".join(e.heard for e in entries if isinstance(e, AgentEntry) and e.heard)


async def end_of(caller: Caller) -> str:
    """Wait until the agent has hung up, and return its reason."""
    with trio.fail_after(1):
        await caller.call.ended.wait()
    return caller.call.end_reason
