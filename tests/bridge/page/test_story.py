"""What the timeline makes of the events of a call, run in the browser."""

from __future__ import annotations

from typing import Any

import pytest

STORY = """
async ([events, closed]) => {
  const { Story, describe } = await import(new URL("page/timeline-data.js", document.baseURI));
  const story = new Story();
  for (const [t, name, data] of events) story.add({ t, name, data: data ?? {} });
  if (closed !== null) story.close(closed);
  return { ...story, words: story.overlaps.map(describe) };
}
"""
SPEAKS: list[list[Any]] = [[1.0, "agent.started_speaking", {"utterance": 1}]]


def held(at: float, until: float, decision: str, rule: str = "a_rule") -> list[list[Any]]:
    """A sound that holds the agent until it is decided."""
    values = {"voiced_s": 0.2}
    decided = {"about": "barge_in", "decision": decision, "rule": rule, "values": values}
    return [
        [at, "voice.started"],
        [at, "agent.speech_held", {"reason": "barge_in"}],
        [until - 0.05, "voice.stopped", {"voiced_s": 0.2}],
        [until, "turn.decided", decided],
        [until, "agent.speech_released", {"reason": "barge_in", "held_s": until - at}],
    ]


def told(page: Any, events: list[list[Any]], closed: float | None = None) -> dict[str, Any]:
    """Gives a Story events, and returns what it tells."""
    story: dict[str, Any] = page.evaluate(STORY, [events, closed])
    return story


def test_states_follow_one_another(bare_page: Any) -> None:
    """Each state ends where the next begins, and the last one with the call."""
    events = [[t, "call.state_changed", {"state": s}] for t, s in [(0, "idle"), (2, "speaking")]]
    story = told(bare_page, events, 5)
    assert story["states"] == [
        {"from": 0, "to": 2, "state": "idle"},
        {"from": 2, "to": 5, "state": "speaking"},
    ]


@pytest.mark.parametrize(
    ("decision", "kind"),
    [
        ("acknowledgement", "backchannel"),
        ("noise", "false_alarm"),
        ("echo", "false_alarm"),
        ("too_few_words", "false_alarm"),
        ("interruption", "interruption"),
        ("undecided", "overlap"),
        ("something_new", "overlap"),
    ],
)
def test_an_overlap_is_what_was_decided(bare_page: Any, decision: str, kind: str) -> None:
    """The decision of the turn taker names the overlap, with its rule and values."""
    story = told(bare_page, [*SPEAKS, *held(2.0, 2.4, decision)])
    [overlap] = story["overlaps"]
    assert (overlap["from"], overlap["to"], overlap["kind"]) == (2.0, 2.4, kind)
    assert overlap["heldS"] == pytest.approx(0.4)
    assert "rule a_rule (voiced_s 0.2)" in story["words"][0]


def test_an_interruption_ends_where_the_agent_is_cut(bare_page: Any) -> None:
    """A cut makes an overlap an interruption, also where nobody decides about turns."""
    events = [
        *SPEAKS,
        [2.0, "user.started_speaking"],
        [2.0, "agent.stopped_speaking", {"utterance": 1, "cut": True}],
        [2.1, "agent.speech_cut", {"utterance": 1, "at_ms": 980}],
        [4.0, "user.stopped_speaking"],
    ]
    story = told(bare_page, events)
    [overlap] = story["overlaps"]
    assert (overlap["from"], overlap["kind"], overlap["cutMs"]) == (2.0, "interruption", 980)
    assert overlap["to"] == 2.0
    assert story["cuts"] == [{"t": 2.0, "atMs": 980, "utterance": 1}]
    assert story["words"] == ["agent cut after 0.98 s of speech"]


def test_words_come_late(bare_page: Any) -> None:
    """What was let go at first is an interruption once its words say so, and then stays one."""
    events = [*SPEAKS, *held(2.0, 2.3, "noise")]
    late = {"about": "barge_in", "decision": "interruption", "rule": "min_words"}
    events += [
        [3.0, "turn.decided", late],
        [3.0, "agent.stopped_speaking", {"utterance": 1, "cut": True}],
        [3.1, "agent.speech_cut", {"utterance": 1, "at_ms": 1700}],
        [3.2, "turn.decided", {"about": "barge_in", "decision": "noise", "rule": "words"}],
    ]
    [overlap] = told(bare_page, events)["overlaps"]
    assert (overlap["kind"], overlap["to"]) == ("interruption", 3.0)


def test_a_voice_while_the_agent_is_silent_is_no_overlap(bare_page: Any) -> None:
    """Turns that follow one another leave nothing in the list."""
    events = [
        [0.5, "voice.started"],
        [0.9, "voice.stopped"],
        *SPEAKS,
        [2.0, "agent.stopped_speaking", {"utterance": 1}],
        [2.5, "user.started_speaking"],
        [3.0, "user.stopped_speaking"],
        [3.0, "turn.decided", {"about": "end", "decision": "complete", "rule": "model"}],
    ]
    assert told(bare_page, events)["overlaps"] == []


def test_a_pause_is_a_hold_and_no_overlap(bare_page: Any) -> None:
    """The verb pause holds the agent without anybody speaking."""
    events = [
        *SPEAKS,
        [2.0, "agent.speech_held", {"reason": "pause"}],
        [5.0, "agent.speech_released", {"reason": "pause", "held_s": 3.0}],
    ]
    story = told(bare_page, events)
    assert story["holds"] == [{"from": 2.0, "to": 5.0, "reason": "pause"}]
    assert story["overlaps"] == []


def test_three_sounds_are_three_overlaps(bare_page: Any) -> None:
    """Each sound is one entry, in order, and a call that ends closes the last one."""
    events = [*SPEAKS, *held(2, 2.3, "noise"), *held(4, 4.3, "acknowledgement")]
    events += [[6.0, "voice.started"]]
    story = told(bare_page, events, 7.0)
    assert [(o["from"], o["to"], o["kind"]) for o in story["overlaps"]] == [
        (2, 2.3, "false_alarm"),
        (4, 4.3, "backchannel"),
        (6.0, 7.0, "overlap"),
    ]
