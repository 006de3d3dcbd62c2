"""The table of the evaluation that ships, and decisions in words."""

from __future__ import annotations

from collections.abc import Iterable

from bargein.evaluation import MeasurementRow as MeasurementRow
from bargein.evaluation import as_json as as_json
from bargein.evaluation import row_lines as row_lines
from bargein.evaluation import row_sentence as row_sentence
from bargein.evaluation import table_heading as table_heading
from bargein.rehearsal import TurnDecision, decision_in_words


def decided(decisions: Iterable[TurnDecision], most: int = 2) -> str:
    """Return decisions in words, in order.

    Args:
        decisions: The decisions.
        most: How many to include.
    """
    return "; ".join(decision_in_words(each) for each in list(decisions)[:most])
