"""The table of the evaluation that ships, and decisions in words."""

from __future__ import annotations

from collections.abc import Iterable

from bargein.evaluation import Row as Row
from bargein.evaluation import as_json as as_json
from bargein.evaluation import head as head
from bargein.evaluation import lines as lines
from bargein.evaluation import told as told
from bargein.rehearsal import TurnDecision, decision_in_words


def decided(decisions: Iterable[TurnDecision], most: int = 2) -> str:
    """Return decisions in words, in order.

    Args:
        decisions: The decisions.
        most: How many to include.
    """
    return "; ".join(decision_in_words(each) for each in list(decisions)[:most])
