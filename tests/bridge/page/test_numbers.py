"""What is measured in a call, run in the browser."""

from __future__ import annotations

from typing import Any

import pytest

NUMBERS = """
async ({ voices, until, records, now }) => {
  const load = (name) => import(new URL(`page/${name}.js`, document.baseURI));
  const modules = await Promise.all(["levels", "metrics", "timeline-data"].map(load));
  const [{ Levels }, { Numbers, median }, { Story }] = modules;
  const model = { mic: new Levels(), agent: new Levels(), story: new Story() };
  const numbers = new Numbers(model);
  for (const [who, spans] of Object.entries(voices)) {
    for (let n = 1; n <= until * 50; n++) {
      const t = n / 50;
      const loud = spans.some(([from, to]) => t - 0.01 > from && t - 0.01 < to);
      model[who].add(t, loud ? 0.2 : 0.0001);
    }
  }
  for (const [t, name, data] of records) {
    model.story.add({ t, name, data });
    numbers.add({ t, name, data });
  }
  const settled = numbers.settle(now);
  const settling = numbers.isSettling;
  const values = {};
  for (const each of numbers.series) values[each.key] = each.values.map(({ value }) => value);
  return {
    settled,
    settling,
    values,
    counts: numbers.counts,
    units: numbers.series.map(({ unit }) => unit),
    median: median([3, 1, 2]),
    even: median([1, 2]),
  };
}
"""
CUT: list[Any] = [5.6, "agent.speech_cut", {"utterance": 1, "at_ms": 2000}]


def measure(
    page: Any,
    *records: list[Any],
    mic: list[tuple[float, float]] | None = None,
    agent: list[tuple[float, float]] | None = None,
    until: float = 10.0,
    now: float = 10.0,
) -> dict[str, Any]:
    """Gives Numbers two voices and some records, and returns what it has measured by `now`.

    Args:
        page: A page with nothing in it.
        *records: What is told of the call.
        mic: When the caller is loud, in s.
        agent: When the agent is.
        until: When the last levels were that have come.
        now: The time.
    """
    voices = {"mic": mic or [], "agent": agent or []}
    given = {"voices": voices, "until": until, "records": list(records), "now": now}
    told: dict[str, Any] = page.evaluate(NUMBERS, given)
    return told


def metric(name: str, value: float | str, unit: str = "s") -> list[Any]:
    """A metric of the server."""
    return [1.0, "call.metric", {"name": name, "value": value, "unit": unit}]


def test_metrics_of_the_server_are_milliseconds(bare_page: Any) -> None:
    """Seconds become milliseconds, other units stay, and what is no number is left out."""
    told = measure(
        bare_page,
        metric("answer.first_text_s", 0.2),
        metric("answer.first_text_s", 0.3),
        metric("load", 7, "jobs"),
        metric("mood", "good", ""),
    )
    assert told["values"]["answer.first_text_s"] == [200, 300]
    assert told["values"]["load"] == [7]
    assert told["units"][-1] == "jobs"
    assert "mood" not in told["values"]
    assert (told["median"], told["even"]) == (2, 1.5)


def test_a_cut_is_measured_from_voice_to_silence(bare_page: Any) -> None:
    """From the first sound of the caller to the last of the agent, though the cut came later."""
    told = measure(bare_page, CUT, mic=[(5.0, 7.0)], agent=[(2.0, 5.16)])
    assert told["settled"] is True
    assert told["values"]["page.silent_after"] == [pytest.approx(160)]
    assert told["counts"]["Cuts"] == 1


def test_pauses_inside_a_voice_do_not_count(bare_page: Any) -> None:
    """A voice that takes a breath is one voice; what was said long before is another."""
    told = measure(bare_page, CUT, mic=[(1.0, 2.0), (5.0, 5.2), (5.36, 6.0)], agent=[(2.0, 5.4)])
    assert told["values"]["page.silent_after"] == [pytest.approx(400)]


@pytest.mark.parametrize(
    ("mic", "agent"),
    [
        ([], [(2.0, 5.16)]),  # typed, or a key
        ([(0.0, 10.0)], [(2.0, 5.16)]),  # a loud room
        ([(5.0, 7.0)], []),  # the agent was silent anyway
    ],
)
def test_a_cut_without_a_beginning_is_not_measured(
    bare_page: Any, mic: list[tuple[float, float]], agent: list[tuple[float, float]]
) -> None:
    """No figure is shown for what was not there to be measured."""
    assert measure(bare_page, CUT, mic=mic, agent=agent)["values"]["page.silent_after"] == []


def test_a_cut_waits_for_its_levels(bare_page: Any) -> None:
    """It is measured only when the levels around it must have come."""
    told = measure(bare_page, CUT, mic=[(5.0, 7.0)], agent=[(2.0, 5.16)], now=5.7)
    assert (told["settled"], told["settling"]) == (False, True)
    assert told["values"]["page.silent_after"] == []


def test_levels_that_come_late_are_waited_for(bare_page: Any) -> None:
    """On a page that is delayed, it is measured when they are there, and at last without them."""
    mic, agent = [(5.0, 7.0)], [(2.0, 5.16)]
    late = measure(bare_page, CUT, mic=mic, agent=agent, until=5.8, now=6.5)
    assert (late["settled"], late["settling"]) == (False, True)
    there = measure(bare_page, CUT, mic=mic, agent=agent, until=6.0, now=6.5)
    assert (there["settled"], there["settling"]) == (True, False)
    assert there["values"]["page.silent_after"] == [pytest.approx(160)]
    at_last = measure(bare_page, CUT, mic=mic, agent=agent, until=5.8, now=8.6)
    assert (at_last["settled"], at_last["settling"]) == (True, False)


def test_counts(bare_page: Any) -> None:
    """Overlaps are counted by what they were, and underruns as the page has them."""

    def sound(at: float, decision: str) -> list[list[Any]]:
        decided = {"about": "barge_in", "decision": decision, "rule": "r"}
        return [
            [at, "voice.started", {}],
            [at + 0.2, "voice.stopped", {}],
            [at + 0.3, "turn.decided", decided],
        ]

    told = measure(
        bare_page,
        [0.5, "agent.started_speaking", {}],
        *sound(1, "noise"),
        *sound(2, "acknowledgement"),
        *sound(3, "echo"),
        [3.5, "page.player_underrun", {}],
        [4.0, "page.round_trip", {"ms": 12}],
        *sound(5, "interruption"),
        CUT,
    )
    assert told["counts"] == {
        "Interruptions": 1,
        "Backchannels": 1,
        "False alarms": 2,
        "Cuts": 1,
        "Underruns": 1,
    }
    assert told["values"]["page.round_trip"] == [12]
