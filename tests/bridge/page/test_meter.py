"""The meter of what is played, run in the browser."""

from __future__ import annotations

from typing import Any

METER = """
async ([rate, blocks]) => {
  const { Meter } = await import(new URL("page/level-meter.js", document.baseURI));
  const reports = [];
  const meter = new Meter(rate, (report) => reports.push(report));
  blocks.forEach((level, n) => meter.push(new Float32Array(128).fill(level), n * 128));
  return reports;
}
"""


def reports(page: Any, rate: int, blocks: list[float]) -> list[dict[str, Any]]:
    """Plays blocks of 128 equal samples, and returns what the meter reports."""
    told: list[dict[str, Any]] = page.evaluate(METER, [rate, blocks])
    return told


def test_five_steps_make_a_message(bare_page: Any) -> None:
    """Each 100 ms there is a message with five levels, and the time at which the last step ends."""
    told = reports(bare_page, 48_000, [0.5] * 76)  # 202 ms
    assert [round(each["at"], 4) for each in told] == [0.1, 0.2]
    assert all(each["levels"] == [0.5] * 5 and each["kind"] == "level" for each in told)


def test_steps_end_inside_of_blocks(bare_page: Any) -> None:
    """At 44.1 kHz a step is 882 samples, and its level counts exactly those."""
    told = reports(bare_page, 44_100, [0.0] * 7 + [1.0] * 30)
    first = told[0]["levels"][:2]
    assert first[0] == 0.0  # 896 samples of silence are more than a step
    assert abs(first[1] - ((882 - 14) / 882) ** 0.5) < 1e-6


def test_silence_is_not_told(bare_page: Any) -> None:
    """No message is sent while nothing is heard."""
    assert reports(bare_page, 48_000, [0.0] * 400) == []
