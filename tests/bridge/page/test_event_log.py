"""How the event log sorts and sums up events, run in the browser."""

from __future__ import annotations

from typing import Any

import pytest

CATEGORY = """
async (name) => {
  const { categoryOf } = await import(new URL("page/event-log.js", document.baseURI));
  return categoryOf(name);
}
"""
SUMMARY = """
async (data) => {
  const { summary } = await import(new URL("page/event-log.js", document.baseURI));
  return summary(data);
}
"""


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("user.transcription", "Turns"),
        ("turn.decided", "Turns"),
        ("agent.speech_cut", "Speech"),
        ("route.gated", "Routes"),
        ("agent.tool_call", "Tools"),
        ("handle.receipt", "Tools"),
        ("call.state_changed", "State"),
        ("call.metric", "Metrics"),
        ("agent.error", "Errors"),
        ("page.lost", "Errors"),
        ("page.hold", "Page"),
        ("order.placed", "Other"),
    ],
)
def test_each_event_has_one_category(bare_page: Any, name: str, category: str) -> None:
    """The most special beginning of a name decides."""
    assert bare_page.evaluate(CATEGORY, name) == category


def test_a_summary_is_one_short_line(bare_page: Any) -> None:
    """Fields stand one after the other, empty ones are left out, long lines end."""
    data = {"name": "x", "value": 0, "unit": "", "on": False, "values": {"a": 1}, "none": None}
    assert bare_page.evaluate(SUMMARY, data) == 'name x · value 0 · on false · values {"a":1}'
    long = bare_page.evaluate(SUMMARY, {"text": "y" * 500})
    assert len(long) == 141
    assert long.endswith("…")
