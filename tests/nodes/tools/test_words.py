"""What the model is told of each outcome."""

from typing import get_args

from bargein.control import ToolOutcome
from bargein.nodes.tools._prompt_texts import NEVER, WORDS, words_for


def test_each_outcome_has_words_of_its_own():
    """No outcome is left out, and no two read the same."""
    assert set(WORDS) == set(get_args(ToolOutcome))
    assert len({*WORDS.values(), NEVER}) == len(WORDS) + 1
    assert not WORDS["completed"]


def test_what_was_cut_never_reads_as_refused():
    """A cut tool asks for verification; only a denied one speaks of the user's no."""
    assert "may have partially executed; verify before retrying" in WORDS["effect_unknown"]
    assert "verify before retrying" in WORDS["timed_out"]
    assert [outcome for outcome, words in WORDS.items() if "denied" in words] == ["denied"]
    assert "neither yes nor no" in WORDS["withdrawn"]
    for outcome in ("not_started", "cancelled_before_effect", "effect_unknown"):
        assert "user" not in WORDS[outcome]


def test_the_words_stand_with_what_the_tool_said():
    """A result comes first, what it is about a cut tool comes after the words."""
    assert words_for("completed", "42") == "42"
    assert words_for("completed") == ""
    assert words_for("completed_after_interrupt", "42").startswith("42\n")
    assert words_for("effect_unknown", "3 of 10") == WORDS["effect_unknown"] + "\n3 of 10"
