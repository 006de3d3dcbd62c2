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
FIELDS = """
async (data) => {
  const { fieldsOf } = await import(new URL("page/event-log.js", document.baseURI));
  return fieldsOf(data);
}
"""
ROW = """
async () => {
  const { EventLog } = await import(new URL("page/event-log.js", document.baseURI));
  const log = new EventLog();
  log.add({ t: 1, name: "a.b", source: "call", data: { held_s: 0.5, rule: "min_words" } });
  log.setShown(true);
  const cell = log.element.querySelector(".what");
  const texts = (selector) => [...cell.querySelectorAll(selector)].map((e) => e.textContent);
  return [cell.textContent.trim(), texts(".key"), texts(".value")];
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


def test_fields_are_named_values(bare_page: Any) -> None:
    """Nested fields are named by their way, numbers are rounded, and empty ones are left out."""
    data = {
        "name": "x",
        "value": 0.12345,
        "unit": "",
        "on": False,
        "values": {"voiced_s": 0.18, "words": [1, "two"]},
        "none": None,
        "empty": [],
        "count": 0,
    }
    assert bare_page.evaluate(FIELDS, data) == [
        ["name", "x"],
        ["value", "0.123"],
        ["on", "no"],
        ["values.voiced_s", "0.18"],
        ["values.words", "1, two"],
        ["count", "0"],
    ]


def test_long_fields_and_many_of_them_end(bare_page: Any) -> None:
    """A row stays short: the event opens to all that it has."""
    [[name, value]] = bare_page.evaluate(FIELDS, {"text": "y" * 500})
    assert (name, len(value), value[-1]) == ("text", 121, "…")
    many = bare_page.evaluate(FIELDS, {f"n{i}": i for i in range(12)})
    assert many[7:] == [["n7", "7"], ["", "and 4 more"]]
    assert len(bare_page.evaluate(FIELDS, {f"n{i}": i for i in range(9)})) == 9


def test_a_row_shows_its_fields_apart(bare_page: Any) -> None:
    """Names and values are elements of their own, and read as words with spaces."""
    told = bare_page.evaluate(ROW)
    assert told == ["held_s 0.5 rule min_words", ["held_s", "rule"], ["0.5", "min_words"]]
