"""Tests of a rehearsal's report as plain data and as words."""

from __future__ import annotations

import json
from array import array
from dataclasses import replace

from bargein.bridge.rehearsal._report import as_json, decision_in_words, parts_in_words
from bargein.rehearsal import (
    Answer,
    Aside,
    Check,
    Cut,
    Decision,
    Held,
    Line,
    Parts,
    Recording,
    Rehearsal,
    Said,
    agent_falls_silent,
)

SAID = Said(Line("A latte.", agent_falls_silent()), 1.0, 2.0)
PARTS = Parts(0.2, 0.3, 0.25, 0.01, 0.02, 0.1, 0.11000001)


def found(*answers: Answer) -> Rehearsal:
    """Return a rehearsal with these answers."""
    return Rehearsal(
        recording=Recording(50.0, 6.0, array("h"), array("h"), ()),
        said=(SAID,),
        cuts=(Cut(SAID, 2, 2.1, 0.1, is_told=True, heard="one two", unheard=" three"),),
        answers=answers,
        history=[],
        ended="agent_ended",
        checks=(Check("it was cheap", False, "9 dollars"),),
    )


def test_a_result_is_plain_data() -> None:
    """Lines with their latency and its parts, cuts and checks can be written as JSON."""
    told = json.loads(json.dumps(as_json(found(Answer(SAID, 0.74, PARTS)))))
    assert (told["ok"], told["ended"], told["duration_s"]) == (False, "agent_ended", 6.0)
    (line,) = told["lines"]
    assert line["text"] == "A latte."
    assert line["first_sound_after_s"] == 0.74
    assert line["parts"] == {
        "silence_s": 0.2,
        "transcription_s": 0.3,
        "end_of_turn_s": 0.25,
        "first_text_s": 0.01,
        "first_clause_s": 0.02,
        "first_piece_s": 0.1,
        "playback_s": 0.11,
    }
    (cut,) = told["cuts"]
    assert (cut["latency_s"], cut["heard"], cut["unheard"]) == (0.1, "one two", " three")
    assert told["checks"] == [{"name": "it was cheap", "ok": False, "measured": "9 dollars"}]


def test_what_is_not_known_is_null() -> None:
    """A line that got no answer has no latency, and one without figures no parts."""
    lines = as_json(found(Answer(SAID, None), Answer(SAID, 0.7)))["lines"]
    assert [line["first_sound_after_s"] for line in lines] == [None, 0.7]
    assert [line["parts"] for line in lines] == [None, None]


def test_parts_are_told_in_the_order_in_which_they_pass() -> None:
    """Each part has its seconds; the model that works beside the recogniser stands in brackets."""
    assert parts_in_words(PARTS) == (
        "0.20 silence waited for, 0.30 transcription (turn model 0.25 beside it), "
        "0.01 first text, 0.02 first clause, 0.10 voice, 0.11 line and player"
    )


def test_a_decision_is_told_with_what_it_compared() -> None:
    """Numbers have two places at most; a decision without values has none."""
    values = {"voiced_s": 0.5, "min_duration_s": 0.50, "words": 2, "kind": "echo"}
    decision = Decision(2.0, "barge_in", "interruption", "min_duration_s", values)
    assert decision_in_words(decision) == (
        "interruption by min_duration_s (voiced_s 0.5, min_duration_s 0.5, words 2, kind echo)"
    )
    assert decision_in_words(Decision(2.0, "end", "complete", "model")) == "complete by model"


def test_asides_decisions_and_holds_are_plain_data() -> None:
    """What left the agent speaking can be written as JSON, with what was decided."""
    decision = Decision(2.00004, "barge_in", "echo", "echo_guard", {"similarity": 0.9})
    result = replace(
        found(),
        asides=(Aside(SAID, 2, gap_s=0.2, decisions=(decision,)),),
        decisions=(decision,),
        held=(Held(1.9, 2.1, "barge_in"),),
    )
    told = json.loads(json.dumps(as_json(result)))
    assert told["asides"][0]["gap_s"] == 0.2
    assert told["asides"][0]["decisions"] == ["echo by echo_guard (similarity 0.9)"]
    assert told["decisions"][0]["at_s"] == 2.0
    assert told["held"] == [{"from_s": 1.9, "until_s": 2.1, "reason": "barge_in"}]
