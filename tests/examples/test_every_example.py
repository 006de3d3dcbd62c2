"""Every example, interrupted at points all over a conversation with it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bargein import App, Call
from bargein.events import EmergencyStop
from bargein.testing import Caller, Report, barge_in, interrupt_everywhere

pytestmark = pytest.mark.proof

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))

LINES = {
    "assistant": ("Where is parcel 417?", "And when are you open?"),
    "pause_and_redirect": ("Please write the churn memo.", "And once more, only EU."),
    "cafe": (
        "Hi, can I get a large latte and a blueberry muffin please.",
        "No wait, I want a cappuccino instead.",
        "No, that's all.",
    ),
    "form": ("For four people on Saturday, under Miller.", "No, five people.", "Yes."),
    "handoff": ("It is about my bill.", "That's all.", "My internet is slow."),
    "outbound": ("For appointments press two.", "Hello?", "Yes, I will."),
}
"""What is said to an example; to one that is not named, some small talk."""

SMALL_TALK = ("Hello, who is there?", "Please go on.")


def load(path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)  # nobody is asked over the network
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def answer_of(example: ModuleType) -> App | Callable[[Call], Any]:
    return getattr(example, "app", None) or example.answer


def conversation(name: str) -> Callable[[Caller], Any]:
    async def talk(caller: Caller) -> None:
        await caller.quiet()
        for line in LINES.get(name, SMALL_TALK):
            await caller.says(line, takes_s=1.0)
            await caller.quiet()

    return talk


@pytest.fixture(params=EXAMPLES, ids=lambda path: path.stem)
def interrupted(request, monkeypatch) -> Callable[..., Report]:
    """Interrupts one of the examples everywhere."""
    answer = answer_of(load(request.param, monkeypatch))

    def interrupt(**options: Any) -> Report:
        report = interrupt_everywhere(answer, conversation(request.param.stem), **options)
        assert report.cut, "the interrupts met nothing to cut"
        assert report.drifted == 0
        return report

    return interrupt


def test_examples_are_found():
    """There are examples to try."""
    assert "cafe" in [path.stem for path in EXAMPLES]


def test_every_point_in_text(interrupted):
    """A caller who only reads may speak up at any point."""
    interrupted(audio=False, limit=25)


def test_points_all_over_a_voice_call(interrupted):
    """A caller talks over the agent, at any word of it."""
    interrupted(limit=8)


@pytest.mark.parametrize(
    "interrupt",
    [
        lambda caller: caller.call.handle.cancel(),
        lambda caller: caller.call.handle.redirect("Something else, please."),
        lambda caller: caller.publish(EmergencyStop()),
        barge_in,
    ],
    ids=["cancel", "redirect", "emergency stop", "barge-in"],
)
def test_verbs_twice(interrupted, interrupt):
    """Each verb, and once more a step later."""
    interrupted(interrupt=interrupt, twice=True, audio=False, limit=6)
