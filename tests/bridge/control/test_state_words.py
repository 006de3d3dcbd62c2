"""People see the same words for a state everywhere: the page, the console, the demo, the docs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from bargein.events import CallState

ROOT = Path(__file__).parents[3]


def words_in(file: str, begin: str, end: str, pair: str) -> dict[str, str]:
    """Return the words for each state in a table of a file."""
    table = (ROOT / file).read_text().partition(begin)[2].partition(end)[0]
    return dict(re.findall(pair, table))


OURS = words_in("bridge/control/_state_words.py", "STATE_WORDS = {", "}", r'"(\w+)": "([^"]*)"')


def test_every_state_has_words() -> None:
    """Each state of a call has words, and nothing else has."""
    assert set(OURS) == set(get_args(CallState))
    assert OURS["idle"] == "your turn"


def test_the_page_has_the_same_words() -> None:
    """The page's words for the states are those of the console and the demo."""
    page = words_in("bridge/page/control-texts.js", "STATE_WORDS = {", "}", r'(\w+): "([^"]*)"')
    assert page == OURS


def test_the_docs_have_the_same_words() -> None:
    """The table of the states in the docs has these words."""
    begin = "in the console and in the demo |"
    assert words_in("docs/control.md", begin, "\n\n", r"\| `(\w+)` \| ([^|]*) \|") == OURS
