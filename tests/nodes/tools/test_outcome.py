"""What became of a tool, as a table."""

import pytest

from bargein.nodes.tools._body import Conclusion
from bargein.nodes.tools._outcome import FAILED_INSIDE, settle
from bargein.nodes.tools._prompt_texts import words_for


class FakeTool:
    def __init__(self, read_only=False, commits=False):
        self.read_only = read_only
        self.commits = commits


class FakeCommit:
    def __init__(self, stage):
        self.stage = stage
        self.is_entered = stage in ("open", "closed", "broken")


class FakeBody:
    def __init__(self, value=None, error=None, conclusion=None, stage="unused", began=True, **tool):
        self.value = value
        self.error = error
        self.conclusion = conclusion
        self.commit = FakeCommit(stage)
        self.begun_at_s = 1.0 if began else None
        self.tool = FakeTool(**tool)


CUT = {"is_cut": True, "interrupted": True}
LATE = {"is_cut": True, "timed_out": True}
ASKED = {"interrupted": True}
ERROR = ValueError("bad")

TABLE = [
    # what is known of the body, how it was ended, the outcome, whether it is an error
    ({"value": "v"}, {}, "completed", False),
    ({"value": "v"}, ASKED, "completed_after_interrupt", False),
    ({"value": "v"}, CUT, "completed_after_interrupt", False),
    ({"value": "v"}, LATE, "completed", False),
    ({"value": ""}, {}, "completed", False),
    ({"error": ERROR}, {}, "completed", True),
    ({"error": ERROR}, ASKED, "completed_after_interrupt", True),
    ({"error": ERROR, "stage": "closed"}, {}, "completed", True),
    ({"error": ERROR, "stage": "broken"}, {}, "effect_unknown", True),
    ({"error": ERROR, "stage": "open"}, {}, "effect_unknown", True),
    ({"error": ERROR}, CUT, "effect_unknown", False),
    ({"began": False}, CUT, "not_started", False),
    ({}, CUT, "effect_unknown", False),
    ({}, LATE, "timed_out", True),
    ({"read_only": True}, LATE, "timed_out", True),
    ({"read_only": True}, CUT, "cancelled_before_effect", False),
    ({"commits": True}, CUT, "cancelled_before_effect", False),
    ({"commits": True, "stage": "refused"}, CUT, "cancelled_before_effect", False),
    ({"stage": "refused"}, CUT, "cancelled_before_effect", False),
    ({"commits": True, "stage": "open"}, CUT, "effect_unknown", False),
    ({"commits": True, "stage": "closed"}, CUT, "effect_unknown", False),
    ({"commits": True, "stage": "broken"}, CUT, "effect_unknown", False),
    ({"conclusion": Conclusion("c", "not_started", False)}, CUT, "not_started", False),
    ({"conclusion": Conclusion("c", "completed", False)}, CUT, "completed_after_interrupt", False),
    ({"conclusion": Conclusion("c", None, True)}, CUT, "effect_unknown", True),
    ({"conclusion": Conclusion("c", None, True), "value": "v"}, {}, "completed", True),
    ({"conclusion": Conclusion("c", "effect_unknown", True), "error": ERROR}, {}, "effect_unknown",
     True),
]  # fmt: skip


@pytest.mark.parametrize(("body", "how", "outcome", "error"), TABLE)
def test_the_table(body, how, outcome, error):
    """One outcome follows from what is known, and the words go with it."""
    how = {"is_cut": False, "interrupted": False, "timed_out": False, **how}
    settled = settle(FakeBody(**body), **how)
    assert (settled.outcome, settled.error) == (outcome, error)
    assert words_for(outcome) in settled.content or (error and body.get("error") is ERROR)


def test_an_error_is_told_by_class_and_message():
    """Inside the commit section the model also reads that the effect is not known."""
    how = {"is_cut": False, "interrupted": False, "timed_out": False}
    assert settle(FakeBody(error=ERROR), **how).content == "ValueError: bad"
    inside = settle(FakeBody(error=ERROR, stage="broken"), **how)
    assert inside.content == f"ValueError: bad\n{FAILED_INSIDE}"


def test_a_conclusion_takes_the_place_of_the_value():
    """What a tool concludes is what the model reads."""
    how = {"is_cut": False, "interrupted": False, "timed_out": False}
    body = FakeBody(value="v", conclusion=Conclusion("better", None, False))
    assert settle(body, **how).content == "better"


def test_words_are_not_said_twice():
    """The result of another call has its words already."""
    how = {"is_cut": False, "interrupted": False, "timed_out": False}
    whole = words_for("effect_unknown", "3 of 10")
    body = FakeBody(value="", conclusion=Conclusion(whole, "effect_unknown", False, True))
    assert settle(body, **how).content == whole
