"""The journal, and who observes it."""

from __future__ import annotations

from typing import Any

OBSERVED = """
async () => {
  const { Journal } = await import(new URL("page/page-log.js", document.baseURI));
  const journal = new Journal();
  const seen = [];
  journal.note("before");
  const end = journal.observe((entry) => seen.push([entry.ev, entry.level]));
  journal.note("kept", { level: 1 });
  journal.pass("passing", { level: 2 });
  end();
  journal.note("after");
  return { seen, kept: journal.entries.map(({ ev }) => ev) };
}
"""
BROKEN = """
async () => {
  const { Journal } = await import(new URL("page/page-log.js", document.baseURI));
  const journal = new Journal();
  const seen = [];
  const told = [];
  const real = console.error;
  console.error = (...words) => told.push(String(words.at(-1)));
  journal.observe(() => { throw new Error("broken"); });
  journal.observe(({ ev }) => seen.push(ev));
  journal.note("call");
  console.error = real;
  return [seen, told];
}
"""


def test_observers_get_what_comes(bare_page: Any) -> None:
    """They get each entry from then on, and also what is too much to be kept, until they end."""
    result = bare_page.evaluate(OBSERVED)
    assert result["seen"] == [["kept", 1], ["passing", 2]]
    assert result["kept"] == ["before", "kept", "after"]


def test_an_observer_that_fails_delays_nobody(bare_page: Any) -> None:
    """The error is told on the console, and the call and the other observers go on."""
    assert bare_page.evaluate(BROKEN) == [["call"], ["Error: broken"]]
