"""The record of how loud somebody was, run in the browser."""

from __future__ import annotations

from typing import Any

LEVELS = """
async (script) => {
  const { Levels, toByte } = await import(new URL("page/levels.js", document.baseURI));
  const levels = new Levels();
  const told = [];
  for (const [verb, ...values] of script) {
    if (verb === "byte") told.push(toByte(...values));
    else if (verb === "end") told.push(Math.round(levels.end * 1000) / 1000);
    else if (verb === "add") levels.add(...values);
    else told.push(levels[verb](...values));
  }
  return told;
}
"""


def told(page: Any, *script: list[Any]) -> list[Any]:
    """Runs calls of a Levels, and returns what those that tell something said."""
    result: list[Any] = page.evaluate(LEVELS, list(script))
    return result


def speech(*spans: tuple[float, float], loud: float = 0.2) -> list[list[Any]]:
    """Steps of 20 ms that are loud in the spans, up to the end of the last one."""
    steps = [["add", n / 50, 0.0] for n in range(1, round(spans[-1][1] * 50) + 1)]
    for step in steps:
        if any(start < step[1] - 0.01 < end for start, end in spans):
            step[2] = loud
    return steps


def test_levels_are_decibels_in_a_byte(bare_page: Any) -> None:
    """Full scale is 255, everything below -60 dB is 0, and halfway is -30 dB."""
    assert told(bare_page, ["byte", 1], ["byte", 0], ["byte", 0.0005], ["byte", 0.0317]) == [
        255, 0, 0, 128,
    ]  # fmt: skip


def test_the_loudest_step_of_a_time_is_found(bare_page: Any) -> None:
    """A column of the picture shows the loudest of its steps; what was left out is silent."""
    script = [["add", 0.1, 1.0], ["add", 0.5, 0.1], ["end"]]
    script += [["loudest", 0.0, 0.06], ["loudest", 0.07, 0.1], ["loudest", 0.1, 0.6]]
    assert told(bare_page, *script) == [0.5, 0, 255, 170]


def test_two_values_of_one_step_are_as_loud_as_the_louder(bare_page: Any) -> None:
    """Clocks that drift put two values into one step; none is lost, in neither order."""
    for values in ([0.1, 1.0], [1.0, 0.1]):
        script = [["add", 0.1, value] for value in values]
        assert told(bare_page, *script, ["loudest", 0.08, 0.1]) == [255]


def test_half_an_hour_is_kept(bare_page: Any) -> None:
    """What is older than the ring is forgotten, and never shown as something newer."""
    script = [["add", 1.0, 1.0], ["add", 1.02, 1.0], ["add", 1801.01, 0.5]]
    assert told(bare_page, *script, ["loudest", 0.9, 1.1], ["loudest", 1799, 1800.9]) == [0, 0]
    assert told(bare_page, *script, ["add", 0.5, 1.0], ["loudest", 0.4, 0.6]) == [0]


def test_when_somebody_fell_silent(bare_page: Any) -> None:
    """The end of the last loud step before a time is found, if it is not too long ago."""
    script = speech((0.2, 1.0), (2.0, 2.1))
    asked = [["lastLoud", t, 85, since] for t, since in [(1.5, 0), (1.5, 1.2), (9, 0)]]
    found = told(bare_page, *script, *asked)
    assert [None if t is None else round(t, 3) for t in found] == [1.0, None, 2.1]


def test_when_a_voice_began(bare_page: Any) -> None:
    """The start of a voice is found over its short pauses, and not over long ones."""
    script = speech((0.2, 0.6), (1.4, 1.8), (2.0, 2.4))
    found = told(bare_page, *script, ["startOfLoud", 2.3, 85, 0.25, 0])
    assert round(found[0], 3) == 1.4
    assert told(bare_page, *script, ["startOfLoud", 1.2, 85, 0.25, 0]) == [None]
