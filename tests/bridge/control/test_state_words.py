"""People see the same words for a state everywhere: the page, the console, the demo, the docs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from bargein.bridge.control._state_words import STATE_WORDS, state_words
from bargein.events import CallState

ROOT = Path(__file__).parents[3]


def test_every_state_has_words() -> None:
    """Each state of a call has words, and nothing else has."""
    assert set(STATE_WORDS) == set(get_args(CallState))
    assert state_words("idle") == "your turn"
    assert state_words("a_state_of_later") == "a state of later"


def test_the_page_has_the_same_words() -> None:
    """The page's words for the states are those of the console and the demo."""
    source = (ROOT / "bridge/page/control-texts.js").read_text()
    table = source.partition("STATE_WORDS = {")[2].partition("}")[0]
    assert dict(re.findall(r'(\w+): "([^"]*)"', table)) == STATE_WORDS


def test_the_docs_have_the_same_words() -> None:
    """The table of the states in the docs has these words."""
    page = (ROOT / "docs/control.md").read_text()
    table = page.partition("in the console and in the demo |")[2].partition("\n\n")[0]
    assert dict(re.findall(r"\| `(\w+)` \| ([^|]*) \|", table)) == STATE_WORDS
